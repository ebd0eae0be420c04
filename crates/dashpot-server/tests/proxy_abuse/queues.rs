//! Callers who hang up while they wait for their turn: the backend never hears of them, and those behind
//! close up.

use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::caller::{Caller, get};
use crate::echo;
use crate::frames::{self, Connection, RESET, frame};
use crate::gateway::Gateway;
use crate::service::until;

/// One every two seconds; so many may wait.
fn start(places: usize) -> (Backend, Gateway) {
    let rules = format!(
        "[[rule]]\nname = 'queue'\nmatch = {{ path = '/q/*' }}\nlimits = ['30/min']\n\
         algorithm = 'leaky-bucket'\nqueue = {places}\n"
    );
    let backend = echo::backend();
    let gateway = Gateway::with_rules(backend.address, &rules, &[]);
    (backend, gateway)
}

fn waiting(gateway: &Gateway, count: usize) {
    until(&format!("{count} to wait"), Duration::from_secs(5), || {
        (gateway.service.metric("dashpot_queued") == count as f64).then_some(())
    });
}

/// Waits in line for this path. One after the other, so that they come in order.
fn line_up(gateway: &Gateway, names: &[&str]) -> Vec<Caller> {
    let mut line = Vec::new();
    let before = gateway.service.metric("dashpot_queued") as usize;
    for name in names {
        let mut caller = gateway.caller();
        caller.send(get(&format!("/q/{name}")));
        line.push(caller);
        waiting(gateway, before + line.len());
    }
    line
}

#[test]
fn those_behind_close_up_and_the_backend_never_hears_of_it() {
    let (backend, mut gateway) = start(10);
    gateway.serves("/q/first");
    let begun = Instant::now();
    let mut line = line_up(&gateway, &["a", "b", "c", "d"]);
    // In two seconds it would be a's turn, in four b's, in six c's and in eight d's.
    let (c, _) = (line.remove(2), line.remove(0));
    c.reset();
    waiting(&gateway, 2);
    let mut turns = Vec::new();
    for (caller, path) in line.iter_mut().zip(["GET /q/b", "GET /q/d"]) {
        assert_eq!(caller.answer().unwrap().text(), path);
        turns.push(begun.elapsed());
    }
    println!("b after {:?}, d after {:?}", turns[0], turns[1]);
    assert!(turns[0] > Duration::from_millis(1400) && turns[0] < Duration::from_millis(3400));
    assert!(turns[1] > Duration::from_millis(3400) && turns[1] < Duration::from_millis(5400));
    assert_eq!((backend.times("GET /q/a"), backend.times("GET /q/c")), (0, 0));
    assert_eq!((backend.times("GET /q/b"), backend.times("GET /q/d")), (1, 1));
    waiting(&gateway, 0);
    gateway.is_well();
}

#[test]
fn whoever_leaves_a_full_line_makes_room() {
    let (backend, mut gateway) = start(3);
    gateway.serves("/q/first");
    let mut line = line_up(&gateway, &["a", "b", "c"]);
    let denied = gateway.caller().get("/q/d").unwrap();
    assert_eq!(denied.status(), 429);
    drop(line.remove(1));
    waiting(&gateway, 2);
    let mut last = line_up(&gateway, &["e"]).remove(0);
    assert_eq!(gateway.caller().get("/q/f").unwrap().status(), 429, "there was one place");
    drop(line);
    // Both before it are gone: it is next.
    waiting(&gateway, 1);
    let begun = Instant::now();
    assert_eq!(last.answer().unwrap().text(), "GET /q/e");
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(3400), "{took:?}");
    let seen: Vec<_> = backend.take();
    assert_eq!(seen.len(), 2, "{seen:?}");
    gateway.is_well();
}

#[test]
fn a_line_of_those_who_all_leave_is_no_line() {
    let (backend, mut gateway) = start(200);
    gateway.serves("/q/first");
    let sockets = gateway.sockets();
    let begun = Instant::now();
    let mut crowd: Vec<_> = (0..100).map(|_| gateway.caller()).collect();
    for (nth, caller) in crowd.iter_mut().enumerate() {
        match nth % 2 {
            0 => caller.send(get("/q/crowd")),
            _ => caller.send(crate::caller::post("/q/crowd", "hello")),
        }
    }
    // One may have had its turn, on a machine that is slow.
    until("them to wait", Duration::from_secs(5), || {
        (gateway.service.metric("dashpot_queued") >= 98.0).then_some(())
    });
    drop(crowd);
    waiting(&gateway, 0);
    gateway.has_sockets(sockets + 1, Duration::from_secs(8));
    let mut last = gateway.caller();
    last.send(get("/q/last"));
    assert_eq!(last.answer().unwrap().text(), "GET /q/last");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "a hundred before it are gone: {took:?}");
    let crowd = backend.times("GET /q/crowd") + backend.times("POST /q/crowd hello");
    assert!(crowd <= 2, "the backend heard of {crowd}");
    gateway.is_well();
}

#[test]
fn streams_of_http_2_leave_the_line_as_well() {
    let (backend, mut gateway) = start(10);
    gateway.serves("/q/first");
    let begun = Instant::now();
    let mut connection = Connection::to(&gateway);
    for (nth, path) in (0..).zip(["/q/a", "/q/b", "/q/c"]) {
        connection.send(&frames::request(2 * nth + 1, &frames::get(path), b""));
        waiting(&gateway, nth as usize + 1);
    }
    connection.send(&frame(RESET, 0, 1, &[0, 0, 0, 8]));
    connection.send(&frame(RESET, 0, 3, &[0, 0, 0, 8]));
    waiting(&gateway, 1);
    assert!(matches!(connection.end(5), frames::Ended::Answered(200, body) if body == b"GET /q/c"));
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(3600), "{took:?}");
    assert_eq!((backend.times("GET /q/a"), backend.times("GET /q/b")), (0, 0));
    gateway.is_well();
}
