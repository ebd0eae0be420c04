//! Redis is gone: dashpot does what `[store] on_error` says, and Envoy what it says if that is an error.

use dashpot_testkit::RedisServer;
use dashpot_testkit::process::until;

use super::edge::{ALICE, BOB, CAROL, DAY, Edge, NOTICED, begin_in};
use super::plan::Plan;
use super::store::rules;

/// Envoys of one dashpot: one that does not let pass who cannot be asked about, and one that does.
const CLOSED: usize = 0;
const OPEN: usize = 1;

/// With a Redis that is up. Alice has had what she may have.
fn start(redis: &RedisServer, on_error: &str) -> Edge {
    let mut plan = Plan::patient()
        .limiting("  - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 5 }\n");
    plan.rules = rules(redis, on_error);
    let open = plan.envoys[0].replace("failure_mode_deny: true", "failure_mode_deny: false");
    assert_ne!(plan.envoys[0], open);
    plan.envoys.push(open);
    let edge = Edge::start(plan);
    edge.await_store();
    begin_in(DAY);
    edge.exhaust(ALICE, &[], 5);
    edge
}

fn status(edge: &Edge, gateway: usize) -> u16 {
    edge.ask_at(gateway, ALICE, &[]).status
}

#[test]
fn locally_it_goes_on_limiting() {
    let redis = RedisServer::start();
    let edge = start(&redis, "local");
    redis.kill();
    until("the outage to be noticed", NOTICED, || {
        edge.ask(CAROL, &[]);
        (!edge.store_is_up(0)?).then_some(())
    });
    // It is alone, so all of the limit is its part; that is for both Envoys.
    for left in [4, 3, 2, 1, 0] {
        let answer = edge.ask_at(left % 2, BOB, &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        let told = answer.field("x-ratelimit-remaining").map(str::to_owned);
        assert_eq!(told, Some(left.to_string()), "{answer:?}");
    }
    for gateway in [CLOSED, OPEN] {
        let answer = edge.ask_at(gateway, BOB, &[]);
        assert_eq!(answer.status, 429, "{answer:?}");
        assert!(answer.retry_after() >= 1);
    }
}

#[test]
fn if_it_is_to_allow_everybody_passes() {
    let redis = RedisServer::start();
    let edge = start(&redis, "allow");
    redis.kill();
    for gateway in [CLOSED, OPEN] {
        until("the outage to be noticed", NOTICED, || {
            (status(&edge, gateway) == 200).then_some(())
        });
        for _ in 0..10 {
            assert_eq!(status(&edge, gateway), 200);
        }
    }
    redis.restart();
    // It came back empty: there are five more, and then no more.
    until("the limit to be back", NOTICED, || (status(&edge, CLOSED) == 429).then_some(()));
}

#[test]
fn if_it_is_to_deny_envoy_says_what_happens() {
    let redis = RedisServer::start();
    let edge = start(&redis, "deny");
    redis.kill();
    until("the outage to be noticed", NOTICED, || (status(&edge, CLOSED) == 500).then_some(()));
    edge.seen();
    for _ in 0..10 {
        let answer = edge.ask_at(CLOSED, BOB, &[]);
        assert_eq!(answer.status, 500, "{answer:?}");
        assert_eq!(answer.field("x-envoy-ratelimited"), None, "it is no limit: {answer:?}");
    }
    assert_eq!(edge.seen(), 0);
    for _ in 0..10 {
        let answer = edge.ask_at(OPEN, BOB, &[]);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.field("ratelimit"), None, "{answer:?}");
    }
    redis.restart();
    until("it to be used again", NOTICED, || (status(&edge, CLOSED) == 200).then_some(()));
    until("the limit to be back", NOTICED, || (status(&edge, OPEN) == 429).then_some(()));
}
