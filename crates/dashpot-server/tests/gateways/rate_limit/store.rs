//! Several dashpots on one Redis, behind several Envoys.

use dashpot_testkit::process::until;
use dashpot_testkit::{RedisServer, on_all_threads};

use super::edge::{ALICE, BOB, DAY, Edge, NOTICED, begin_in};
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
    edge.await_store();
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
    edge.await_store();
    begin_in(DAY);
    for _ in 0..3 {
        edge.passes(ALICE, &[]);
    }
    edge.services[0].kill();
    edge.restart(0);
    edge.await_store();
    until("Envoy to reach it", NOTICED, || (edge.ask(BOB, &[]).status == 200).then_some(()));
    edge.exhaust(ALICE, &[], 2);
}
