//! The YAML changes while Envoy asks.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dashpot_testkit::process::until;

use super::edge::{ALICE, BOB, CAROL, DAY, Edge, NOTICED, begin_in};
use super::plan::Plan;
use crate::client::Caller;

/// Asks all the time while others change something.
const IMPATIENT: Caller = Caller(50);
/// Asks until a change is seen.
const WATCHER: Caller = Caller(51);

fn yaml(count: u64) -> String {
    format!(
        "domain: edge\ndescriptors:\n  - key: remote_address\n    \
         rate_limit: {{ unit: day, requests_per_unit: {count} }}\n"
    )
}

fn until_limit_is(edge: &Edge, count: u64) {
    let quota = format!(";q={count};");
    until("the file to be read", NOTICED, || {
        let answer = edge.ask(WATCHER, &[]);
        answer.field("ratelimit-policy")?.contains(&quota).then_some(())
    });
}

#[test]
fn limits_change_and_nobody_notices_but_by_the_limit() {
    let mut plan = Plan::patient();
    plan.yaml = yaml(5);
    let edge = Edge::start(plan);
    begin_in(DAY);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !done.load(Ordering::Relaxed) {
                let answer = edge.ask(IMPATIENT, &[]);
                assert!([200, 429].contains(&answer.status), "{answer:?}");
                asked += 1;
            }
            asked
        });
        // Even if something is not as it should be, the other one ends.
        let changing = scope.spawn(|| change(&edge)).join();
        done.store(true, Ordering::Relaxed);
        let asked: u64 = asking.join().expect("only answers and denials");
        assert!(asked >= 20, "only {asked} were asked meanwhile");
        changing.expect("limits are as they were written");
    });
}

fn change(edge: &Edge) {
    for _ in 0..3 {
        assert_eq!(edge.ask(ALICE, &[]).status, 200);
    }

    edge.write(&yaml(8));
    until_limit_is(edge, 8);
    // What is counted stays: of eight, three are gone.
    let passed = (0..20).filter(|_| edge.ask(ALICE, &[]).status == 200);
    assert_eq!(passed.count(), 5);

    // What is wrong is said, and changes nothing, not even what is right beside it.
    edge.write(&(yaml(2) + "  - kee: remote_address\n"));
    until("the fault to be logged", NOTICED, || {
        edge.services[0].log().contains("edge.yaml:5:").then_some(())
    });
    let passed = (0..20).filter(|_| edge.ask(BOB, &[]).status == 200);
    assert_eq!(passed.count(), 8);

    edge.write(&yaml(2));
    until_limit_is(edge, 2);
    let passed = (0..20).filter(|_| edge.ask(CAROL, &[]).status == 200);
    assert_eq!(passed.count(), 2);

    // Another file about the same domain, which comes and goes.
    let one = "  - key: remote_address\n    value: 127.0.0.51\n";
    edge.write_as("more.yml", &yaml(9).replace("  - key: remote_address\n", one));
    until_limit_is(edge, 9);
    assert_eq!(edge.ask(CAROL, &[]).status, 429, "it is about somebody else");
    fs::remove_file(edge.config("more.yml")).unwrap();
    until_limit_is(edge, 2);
}
