//! Limits that wait: one leaves at a time, in the order they came, at the rate of the limit.

use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::pace::{assert_paced, await_sum, send, wait_in_line};
use crate::proxy::Proxy;

const QUARTER: Duration = Duration::from_millis(250);

fn queue(limit: &str, places: u32, more: &str) -> String {
    format!(
        "[[rule]]\nname = 'q'\nlimits = ['{limit}']\nalgorithm = 'leaky-bucket'\n\
         queue = {places}\n{more}\n"
    )
}

#[test]
fn they_leave_one_at_a_time_in_the_order_they_came() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("4/s", 9, ""));
    let sent = Instant::now();
    let mut callers = wait_in_line(&proxy, &backend, 8);
    for caller in &mut callers {
        assert_eq!(caller.answer().text(), "hello");
    }
    let expected: Vec<_> = (0..8).map(|nth| format!("/{nth}")).collect();
    assert_eq!(backend.paths(), expected);
    assert_paced(&backend.seen(), sent, QUARTER, 0);
}

/// Thrown at it all at once, in no order, they leave at the same pace.
#[test]
fn a_crowd_leaves_at_the_pace_of_the_limit() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("20/s", 30, ""));
    let mut callers: Vec<_> = (0..31).map(|_| proxy.caller()).collect();
    let sent = Instant::now();
    for (nth, caller) in callers.iter_mut().enumerate() {
        caller.send(crate::caller::get(&format!("/{nth}")));
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    let seen = backend.seen();
    assert_eq!(seen.len(), 31);
    for (nth, seen) in (0_u32..).zip(&seen) {
        let turn = Duration::from_millis(50) * nth;
        assert!(seen.at + Duration::from_millis(2) >= sent + turn, "the {nth}th is too early");
    }
    let took = seen[30].at - sent;
    assert!(took < Duration::from_millis(2500), "{took:?} instead of 1.5 s");
}

#[test]
fn when_all_places_are_taken_it_is_denied_at_once() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("1/s", 2, ""));
    let sent = Instant::now();
    let mut callers = wait_in_line(&proxy, &backend, 3);
    let mut denied = proxy.caller();
    for _ in 0..10 {
        let asked = Instant::now();
        let answer = denied.get("/denied");
        if sent.elapsed() > Duration::from_millis(900) {
            break;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.retry_after(), 1, "there is a place when the next leaves");
        assert_eq!(answer.json()["violated-policies"], serde_json::json!(["q"]));
        assert!(asked.elapsed() < Duration::from_millis(400), "{:?}", asked.elapsed());
    }
    // The next has left, so there is a place.
    assert_eq!(callers[1].answer().status, 200);
    callers.remove(1);
    callers.push(send(&proxy, "/3"));
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(backend.paths(), ["/0", "/1", "/2", "/3"]);
    assert_paced(&backend.seen(), sent, Duration::from_secs(1), 0);
}

#[test]
fn some_of_those_waiting_go_through_at_once() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("4/s", 6, "undelayed = 3"));
    let sent = Instant::now();
    let mut callers: Vec<_> = Vec::new();
    for nth in 0..7 {
        callers.push(send(&proxy, &format!("/{nth}")));
        await_sum(&[&proxy], &backend, nth + 1);
    }
    let denied = proxy.get("/7");
    if sent.elapsed() < QUARTER {
        assert_eq!(denied.status, 429);
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    let seen: Vec<_> = backend.seen().into_iter().filter(|seen| seen.path() != "/7").collect();
    assert_paced(&seen, sent, QUARTER, 3);
    let at_once = seen[3].at - sent;
    assert!(at_once < QUARTER, "four go at once: {at_once:?}");
}

#[test]
fn of_several_queues_the_longest_wait_counts() {
    let backend = Backend::start();
    let fast = queue("20/s", 9, "").replace("'q'", "'fast'");
    let slow = queue("2/s", 9, "match = { path = '/slow/*' }").replace("'q'", "'slow'");
    let proxy = Proxy::by(&backend, &(fast + &slow));
    let sent = Instant::now();
    let mut callers: Vec<_> = Vec::new();
    for nth in 0..4 {
        callers.push(send(&proxy, &format!("/slow/{nth}")));
        await_sum(&[&proxy], &backend, nth + 1);
    }
    // One that only has to pass the fast one is there before them.
    let mut other = send(&proxy, "/other");
    assert_eq!(other.answer().status, 200);
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    let slow: Vec<_> =
        backend.seen().into_iter().filter(|seen| seen.path().starts_with("/slow/")).collect();
    let paths: Vec<_> = slow.iter().map(|seen| seen.path()).collect();
    assert_eq!(paths, ["/slow/0", "/slow/1", "/slow/2", "/slow/3"]);
    assert_paced(&slow, sent, Duration::from_millis(500), 0);
}

/// A place in one queue is not taken if another limit denies.
#[test]
fn a_denial_takes_no_place() {
    let backend = Backend::start();
    let few = "[[rule]]\nname = 'few'\nby = ['header:x-key']\nlimits = ['1/day']\n";
    let proxy = Proxy::by(&backend, &(queue("2/s", 5, "") + few));
    let sent = Instant::now();
    assert_eq!(proxy.statuses("/0", &["x-key: a"], 1), [200]);
    for _ in 0..20 {
        assert_eq!(proxy.caller().ask("GET", "/denied", &["x-key: a"], "").status, 429);
    }
    assert_eq!(proxy.statuses("/1", &["x-key: b"], 1), [200]);
    assert_eq!(backend.paths(), ["/0", "/1"]);
    assert_paced(&backend.seen(), sent, Duration::from_millis(500), 0);
}

#[test]
fn each_key_has_a_line_of_its_own() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("2/s", 9, "by = ['header:x-line']"));
    let sent = Instant::now();
    let mut callers = Vec::new();
    for nth in 0..4 {
        for line in ["a", "b", "c"] {
            let mut caller = proxy.caller();
            let key = format!("x-line: {line}");
            let text = crate::caller::request("GET", &format!("/{line}/{nth}"), &[&key], "");
            caller.send(text);
            callers.push(caller);
            await_sum(&[&proxy], &backend, callers.len());
        }
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    for line in ["/a/", "/b/", "/c/"] {
        let of_line = |path: &str| path.starts_with(line);
        let seen: Vec<_> = backend.seen().into_iter().filter(|seen| of_line(seen.path())).collect();
        let paths: Vec<_> = seen.iter().map(|seen| seen.path().to_owned()).collect();
        assert_eq!(paths, [0, 1, 2, 3].map(|nth| format!("{line}{nth}")));
        assert_paced(&seen, sent, Duration::from_millis(500), 0);
    }
}

#[test]
fn a_queue_of_one_route_holds_no_other_up() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("1/s", 50, "match = { path = '/slow/*' }"));
    let mut waiting = Vec::new();
    for nth in 0..30 {
        waiting.push(send(&proxy, &format!("/slow/{nth}")));
    }
    await_sum(&[&proxy], &backend, 30);
    let asked = Instant::now();
    assert_eq!(proxy.statuses("/", &[], 100), [200; 100]);
    assert_eq!(proxy.admin_get("/healthz").status, 200);
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    let slow = backend.paths().into_iter().filter(|path| path.starts_with("/slow")).count();
    assert!(slow <= 5, "{slow} of the slow ones are through");
}

#[test]
fn how_many_wait_is_told() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("4/s", 9, ""));
    assert_eq!(proxy.metric("dashpot_queued"), 0.0);
    assert!(proxy.admin_get("/metrics").text().contains("dashpot_queued 0"));
    let mut callers = wait_in_line(&proxy, &backend, 5);
    for (nth, caller) in callers.iter_mut().enumerate() {
        assert_eq!(caller.answer().status, 200);
        let waiting = proxy.metric("dashpot_queued");
        assert!(waiting <= (4 - nth) as f64, "{waiting} after the {nth}th");
    }
    proxy.await_queued(0);
    assert_eq!(proxy.metric(r#"dashpot_rule_allowed_total{rule="q"}"#), 5.0);
}

/// On a connection that is kept, the next request waits for its turn as everybody does.
#[test]
fn one_connection_waits_again_and_again() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &queue("4/s", 9, ""));
    let sent = Instant::now();
    assert_eq!(proxy.statuses("/", &[], 5), [200; 5]);
    assert_paced(&backend.seen(), sent, QUARTER, 0);
}
