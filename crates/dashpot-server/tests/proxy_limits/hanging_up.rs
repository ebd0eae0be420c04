//! Who hangs up while waiting leaves the queue, and those behind close up.

use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::caller::Caller;
use crate::pace::{assert_paced, send, wait_in_line};
use crate::proxy::Proxy;

const HALF: Duration = Duration::from_millis(500);

fn rules(places: u32) -> String {
    format!(
        "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = {places}\n"
    )
}

/// Five in line, of whom the first has left; these hang up, and these leave after it, half a second apart.
fn without(leavers: &[usize], expected: &[&str], hang_up: impl Fn(Caller)) {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rules(9));
    let sent = Instant::now();
    let callers = wait_in_line(&proxy, &backend, 5);
    let mut staying = Vec::new();
    for (nth, caller) in callers.into_iter().enumerate() {
        match leavers.contains(&nth) {
            true => hang_up(caller),
            false => staying.push(caller),
        }
    }
    proxy.await_queued(4 - leavers.len());
    assert!(sent.elapsed() < HALF, "the machine is too slow for this: {:?}", sent.elapsed());
    // Somebody who comes after that is behind the others, and in nobody's place.
    staying.push(send(&proxy, "/new"));
    for caller in &mut staying {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(backend.paths(), expected);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn the_first_of_the_line() {
    without(&[1], &["/0", "/2", "/3", "/4", "/new"], drop);
}

#[test]
fn one_in_the_middle() {
    without(&[2], &["/0", "/1", "/3", "/4", "/new"], drop);
}

#[test]
fn the_last_of_the_line_whose_place_a_newcomer_gets() {
    without(&[4], &["/0", "/1", "/2", "/3", "/new"], drop);
}

#[test]
fn several_who_stand_apart() {
    without(&[1, 3], &["/0", "/2", "/4", "/new"], drop);
}

#[test]
fn several_who_stand_together() {
    without(&[2, 3], &["/0", "/1", "/4", "/new"], drop);
}

#[test]
fn all_of_them() {
    without(&[1, 2, 3, 4], &["/0", "/new"], drop);
}

#[test]
fn one_that_crashes() {
    without(&[1, 4], &["/0", "/2", "/3", "/new"], Caller::reset);
}

#[test]
fn a_full_line_has_a_place_when_somebody_hangs_up() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rules(3));
    let sent = Instant::now();
    let mut callers = wait_in_line(&proxy, &backend, 4);
    assert_eq!(proxy.get("/denied").status, 429);
    drop(callers.remove(2));
    proxy.await_queued(2);
    callers.push(send(&proxy, "/new"));
    proxy.await_queued(3);
    assert_eq!(proxy.get("/denied").status, 429);
    assert!(sent.elapsed() < HALF, "the machine is too slow for this: {:?}", sent.elapsed());
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(backend.paths(), ["/0", "/1", "/3", "/new"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

/// Again and again, at any moment, while the line moves: whoever stays leaves at the pace of the limit.
#[test]
fn comings_and_goings_change_the_pace_of_nobody() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rules(20).replace("2/s", "10/s"));
    let sent = Instant::now();
    let (mut staying, mut nth) = (Vec::new(), 0);
    while sent.elapsed() < Duration::from_millis(1500) {
        let mut fleeting = Vec::new();
        for _ in 0..3 {
            staying.push(send(&proxy, &format!("/stays/{nth}")));
            fleeting.push(send(&proxy, &format!("/goes/{nth}")));
            nth += 1;
        }
        // Long enough that some have left for the backend, and others have not.
        std::thread::sleep(Duration::from_millis(130));
    }
    let answers: Vec<_> = staying.iter_mut().map(|caller| caller.answer().status).collect();
    let ended = Instant::now();
    let seen = backend.seen();
    let interval = Duration::from_millis(100);
    for (nth, seen) in (0_u32..).zip(&seen) {
        let earliest = sent + interval * nth;
        assert!(seen.at + Duration::from_millis(2) >= earliest, "the {nth}th is too early");
    }
    assert!(answers.iter().all(|status| [200, 429].contains(status)), "{answers:?}");
    // The line was never empty, so nobody's turn was wasted but by those who went at the last moment.
    let turns = (ended - sent).as_millis() / 100;
    assert!(seen.len() as u128 * 10 >= turns * 7, "{} of {turns} turns were used", seen.len());
    proxy.await_queued(0);
}

/// Whoever hangs up gives back what else it took.
#[test]
fn a_permit_is_not_kept_by_who_hangs_up() {
    let backend = Backend::start();
    let permits = "[[rule]]\nname = 'permits'\nlimits = ['3 concurrent']\n";
    let proxy = Proxy::by(&backend, &(rules(9).replace("2/s", "1/min") + permits));
    let mut first = send(&proxy, "/0");
    assert_eq!(first.answer().status, 200);
    for _ in 0..4 {
        let waiting: Vec<_> = (1..4).map(|nth| send(&proxy, &format!("/{nth}"))).collect();
        proxy.await_queued(3);
        let denied = proxy.get("/denied");
        assert_eq!(denied.status, 429);
        assert_eq!(denied.json()["violated-policies"], serde_json::json!(["permits"]));
        drop(waiting);
        proxy.await_queued(0);
    }
    assert_eq!(backend.paths(), ["/0"]);
}
