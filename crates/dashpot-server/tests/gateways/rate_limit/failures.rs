//! Dashpot is gone, or hangs: Envoy does what its configuration says, and in time.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use super::edge::{ALICE, BOB, CAROL, Edge, NOTICED};
use super::plan::Plan;
use crate::client::Caller;

/// The page's timeout is a tenth of that; the rest is for a machine that has other things to do.
const IN_TIME: Duration = Duration::from_secs(5);

/// Ten callers more than may pass: nobody is limited, nor told about limits.
fn everybody_passes(edge: &Edge, caller: Caller) {
    edge.seen();
    for _ in 0..10 {
        let begun = Instant::now();
        let answer = edge.passes(caller, &[]);
        assert!(begun.elapsed() < IN_TIME, "it took {:?}", begun.elapsed());
        for absent in ["ratelimit", "x-ratelimit-limit", "retry-after"] {
            assert_eq!(answer.field(absent), None, "{answer:?}");
        }
    }
    assert_eq!(edge.seen(), 10);
}

fn nobody_passes(edge: &Edge, caller: Caller, status: u16) {
    edge.seen();
    for _ in 0..3 {
        let begun = Instant::now();
        let answer = edge.ask(caller, &[]);
        assert!(begun.elapsed() < IN_TIME, "it took {:?}", begun.elapsed());
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.field("x-envoy-ratelimited"), None, "it is no limit: {answer:?}");
        assert_eq!(answer.field("retry-after"), None, "{answer:?}");
    }
    assert_eq!(edge.seen(), 0);
}

/// Each minute has five, so at most ten of them pass however the clock stands.
fn limits_again(edge: &Edge, caller: Caller) {
    until("somebody to be denied", NOTICED, || {
        let answer = edge.ask(caller, &[]);
        assert!([200, 429, 500, 503].contains(&answer.status), "{answer:?}");
        (answer.status == 429).then_some(())
    });
}

#[test]
fn gone_everybody_passes_until_it_is_back() {
    let mut edge = Edge::start(Plan::of_the_page());
    limits_again(&edge, ALICE);
    edge.services[0].kill();
    everybody_passes(&edge, ALICE);
    edge.restart(0);
    limits_again(&edge, BOB);
}

#[test]
fn hung_it_keeps_nobody_until_it_goes_on() {
    let edge = Edge::start(Plan::of_the_page());
    limits_again(&edge, ALICE);
    edge.services[0].hang();
    everybody_passes(&edge, ALICE);
    edge.services[0].resume();
    limits_again(&edge, BOB);
}

#[test]
fn gone_nobody_passes_if_wished() {
    let mut edge = Edge::start(Plan::patient());
    edge.passes(ALICE, &[]);
    edge.services[0].kill();
    nobody_passes(&edge, ALICE, 500);
    edge.restart(0);
    until("it to be asked again", NOTICED, || (edge.ask(BOB, &[]).status == 200).then_some(()));
    limits_again(&edge, BOB);
}

#[test]
fn hung_nobody_passes_if_wished() {
    let edge = Edge::start(Plan::of_the_page().closed());
    edge.services[0].hang();
    nobody_passes(&edge, ALICE, 500);
    edge.services[0].resume();
    until("it to be asked again", NOTICED, || (edge.ask(CAROL, &[]).status == 200).then_some(()));
    limits_again(&edge, CAROL);
}

#[test]
fn the_status_may_be_another() {
    let mut plan = Plan::patient();
    let closed = "failure_mode_deny: true\n";
    let status = "                      status_on_error: { code: ServiceUnavailable }\n";
    plan.change(closed, &format!("{closed}{status}"));
    let mut edge = Edge::start(plan);
    edge.passes(ALICE, &[]);
    edge.services[0].kill();
    nobody_passes(&edge, ALICE, 503);
}
