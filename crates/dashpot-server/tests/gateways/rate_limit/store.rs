//! Several dashpots on one Redis, behind several Envoys.

use dashpot_testkit::{RedisServer, on_all_threads};

use super::edge::{ALICE, BOB, DAY, Edge, begin_in};
use super::plan::Plan;

/// On this Redis. It is given time, so that a machine that is busy is not taken for one that is down.
pub(super) fn rules(redis: &RedisServer, on_error: &str) -> String {
    format!("[store]\nurl = '{}'\ndeadline = '2s'\non_error = '{on_error}'\n", redis.url())
}

#[test]
fn together_they_let_the_limit_pass_and_no_more() {
    let redis = RedisServer::start();
    let mut plan = Plan::patient().of_dashpots(2).limiting(
        "  - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 40 }\n",
    );
    plan.rules = rules(&redis, "deny");
    plan.envoys.push(plan.envoys[0].clone());
    let edge = Edge::start(plan);
    (0..2).for_each(|nth| edge.until_store_is(nth, true));
    begin_in(DAY);
    edge.seen();
    let passed = on_all_threads(8, |thread| {
        let gateway = usize::from(thread % 2 == 1);
        let answers = (0..10).map(|_| edge.ask_at(gateway, ALICE, &[]).status);
        let passed = answers.inspect(|status| assert!([200, 429].contains(status), "{status}"));
        passed.filter(|status| *status == 200).count()
    });
    assert_eq!(passed.iter().sum::<usize>(), 40, "{passed:?}");
    assert_eq!(edge.seen(), 40);
    for nth in 0..2 {
        let asked = edge.metric(nth, "dashpot_rule_allowed", "edge.remote_address").unwrap();
        assert!(asked > 0.0, "both of them are asked");
    }

    // One after the other, what one was told the next knows.
    for (gateway, left) in [0, 1, 0, 1, 1, 0].into_iter().zip((34..40).rev()) {
        let answer = edge.ask_at(gateway, BOB, &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        let told = answer.field("x-ratelimit-remaining").map(str::to_owned);
        assert_eq!(told, Some(left.to_string()), "{answer:?}");
    }
    assert!(redis.keys_without_ttl().is_empty());
}

/// What was counted before a dashpot ended is known to the next.
#[test]
fn counts_outlive_a_dashpot() {
    let redis = RedisServer::start();
    let mut plan = Plan::patient()
        .limiting("  - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 5 }\n");
    plan.rules = rules(&redis, "deny");
    let mut edge = Edge::start(plan);
    edge.until_store_is(0, true);
    begin_in(DAY);
    for _ in 0..3 {
        edge.passes(ALICE, &[]);
    }
    edge.services[0].kill();
    edge.restart(0);
    edge.until_store_is(0, true);
    // Until Envoy has a connection again, it may say that it has none.
    let first = std::iter::repeat_with(|| edge.ask(BOB, &[])).take(100);
    assert!(first.map(|answer| answer.status).any(|status| status == 200), "it is asked again");
    edge.exhaust(ALICE, &[], 2);
}
