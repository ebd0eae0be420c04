//! One of two dashpots ends, and Envoy, which asks how they are, turns to the other before.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{signal, until};

use super::edge::{ALICE, Edge, NOTICED};
use super::plan::Plan;
use crate::client::Caller;

const RULE: &str = "edge.remote_address";
/// What the health service knows it by, as the page says.
const NAMES: [&str; 3] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"];

/// Enough for everybody, and Envoy asks ten times a second how its dashpots are.
fn start(name: &str, dashpots: u16) -> Edge {
    let check = format!(
        "health_checks: [{{ timeout: 5s, interval: 0.1s, no_traffic_interval: 0.1s, \
         unhealthy_threshold: 1, healthy_threshold: 1, \
         grpc_health_check: {{ service_name: \"{name}\" }} }}]"
    );
    // If none is well, Envoy would ask them all the same.
    let calm = "common_lb_config: { healthy_panic_threshold: { value: 0 } }";
    let plan = Plan::patient().of_dashpots(dashpots).cluster(&[&check, calm]).limiting(
        "  - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 1000000 }\n",
    );
    Edge::start(plan.flag("--drain-delay", "3s"))
}

fn asked(edge: &Edge, nth: usize) -> Option<f64> {
    edge.metric(nth, "dashpot_rule_allowed", RULE)
}

/// Asks so often that each dashpot which is asked at all is.
fn round(edge: &Edge) {
    for _ in 0..6 {
        edge.passes(ALICE, &[]);
    }
}

#[test]
fn one_leaves_and_nobody_notices() {
    let edge = start(NAMES[2], 2);
    until("both to be asked", NOTICED, || {
        round(&edge);
        (asked(&edge, 0)? > 0.0 && asked(&edge, 1)? > 0.0).then_some(())
    });

    let (done, others) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let busy: Vec<_> = (10..13)
            .map(|caller| {
                let (edge, done, others) = (&edge, &done, &others);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        edge.passes(Caller(caller), &[]);
                        others.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        // Even if something is not as it should be, the others end.
        let leaving = scope.spawn(|| leave(&edge)).join();
        done.store(true, Ordering::Relaxed);
        for thread in busy {
            thread.join().expect("everybody passes");
        }
        leaving.expect("one leaves");
    });
    let others = others.into_inner();
    assert!(others > 30, "only {others} were asked meanwhile");
}

/// The first one is told to end. While it is still there it is asked no more; then it is not there.
fn leave(edge: &Edge) {
    let id = edge.services[0].id();
    signal(id, "TERM");
    until("Envoy to turn away", Duration::from_millis(2800), || {
        let before = asked(edge, 0)?;
        round(edge);
        (asked(edge, 0)? == before).then_some(())
    });
    until("it to end", NOTICED, || {
        round(edge);
        has_ended(id).then_some(())
    });
    let before = asked(edge, 1).unwrap();
    round(edge);
    assert!(asked(edge, 1).unwrap() >= before + 6.0, "the other one is asked");
}

/// Nobody has waited for it, so that it is still known to have been there.
fn has_ended(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = status.rsplit_once(") ").unwrap();
    fields.starts_with('Z')
}

/// By whichever name Envoy asks: it is well, and then it is not, though it still answers.
#[test]
fn by_every_name_it_says_when_it_is_to_end() {
    for name in NAMES {
        let edge = start(name, 1);
        edge.passes(ALICE, &[]);
        let id = edge.services[0].id();
        signal(id, "TERM");
        until("Envoy to know", Duration::from_millis(2800), || {
            let answer = edge.ask(ALICE, &[]);
            assert!([200, 500].contains(&answer.status), "{answer:?}");
            (answer.status == 500).then_some(())
        });
        assert!(asked(&edge, 0).unwrap() > 0.0, "{name:?}: it still answers others");
    }
}
