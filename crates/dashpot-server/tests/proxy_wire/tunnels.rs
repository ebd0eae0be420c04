//! How long a tunnel lasts, and who counts it.

use std::time::{Duration, Instant};

use crate::client::PATIENCE;
use crate::scene::{Scene, get, with};
use crate::service::until;
use crate::upgrades::{talk, tunnel};
use crate::wire::has_no_patience;

const RULES: &str = "[[rule]]\nname = 'tunnels'\nby = ['ip']\nlimits = ['1 concurrent']\n";

#[test]
fn who_says_nothing_for_too_long_is_cut_off() {
    let scene = Scene::start(&["--tunnel-timeout", "500ms"]);
    let (mut caller, mut backend) = tunnel(&scene);
    let begun = Instant::now();
    caller.expect_end();
    backend.expect_end();
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(400), "cut off after {took:?}");
    assert!(took < Duration::from_secs(10), "cut off after {took:?}");
}

/// As long as either speaks, it lasts.
#[test]
fn one_of_them_has_to_speak() {
    let scene = Scene::start(&["--tunnel-timeout", "1s"]);
    for by_caller in [true, false] {
        let (mut caller, mut backend) = tunnel(&scene);
        let (from, to) =
            if by_caller { (&mut caller, &mut backend) } else { (&mut backend, &mut caller) };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2500) {
            from.send("still here");
            to.expect_bytes("still here");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A caller that has closed its half, or is gone, does not hold it open.
#[test]
fn a_backend_that_does_not_close_is_waited_for_so_long() {
    let scene = Scene::with_rules(RULES, &["--client-timeout", "500ms"]);
    let (mut caller, mut backend) = tunnel(&scene);
    let begun = Instant::now();
    caller.end();
    caller.patience(Duration::from_secs(8));
    caller.expect_end();
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(430), "cut off after {took:?}");
    backend.expect_end();
    until("the permit", PATIENCE, || is_let_through(&scene).then_some(()));
}

/// The other limits of time are about requests.
#[test]
fn only_its_own_timeout_ends_it() {
    let flags = ["--client-timeout", "200ms", "--idle-timeout", "200ms"];
    let scene = Scene::start(&[&flags[..], &["--response-timeout", "200ms"]].concat());
    let (mut caller, mut backend) = tunnel(&scene);
    std::thread::sleep(Duration::from_millis(800));
    talk(&mut caller, &mut backend);
}

/// Who is denied hears of it at once; who is not waits for the backend.
fn is_let_through(scene: &Scene) -> bool {
    let mut caller = scene.connect();
    caller.send(get("/"));
    caller.patience(Duration::from_secs(1));
    match caller.try_head() {
        Ok(Some(denied)) => assert_eq!(denied.status(), 429),
        answer => {
            let waits = answer.as_ref().is_err_and(has_no_patience);
            assert!(waits && scene.connects_within(PATIENCE), "{answer:?}");
            return true;
        }
    }
    false
}

#[test]
fn a_concurrency_limit_counts_it_until_it_ends() {
    for by_caller in [true, false] {
        let scene = Scene::with_rules(RULES, &[]);
        let (mut caller, mut backend) = tunnel(&scene);
        for _ in 0..3 {
            talk(&mut caller, &mut backend);
            assert!(!is_let_through(&scene));
        }
        let (first, mut second) = if by_caller { (caller, backend) } else { (backend, caller) };
        drop(first);
        second.expect_end();
        drop(second);
        until("the permit", PATIENCE, || is_let_through(&scene).then_some(()));
    }
}

#[test]
fn a_tunnel_that_timed_out_is_not_counted_any_more() {
    let scene = Scene::with_rules(RULES, &["--tunnel-timeout", "300ms"]);
    let (mut caller, mut backend) = tunnel(&scene);
    caller.expect_end();
    backend.expect_end();
    until("the permit", PATIENCE, || is_let_through(&scene).then_some(()));
}

/// Nor is one that never came to be.
#[test]
fn a_refused_upgrade_is_not_counted_any_more() {
    let scene = Scene::with_rules(RULES, &[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", "connection: upgrade\r\nupgrade: echo\r\n", ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 400 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(caller.answer().status(), 400);
    until("the permit", PATIENCE, || is_let_through(&scene).then_some(()));
}

#[test]
fn tunnels_are_counted() {
    let scene = Scene::start(&[]);
    let count = || scene.metric("dashpot_tunnels");
    let is = |expected: f64| {
        until("them to be counted", PATIENCE, || (count() == expected).then_some(()));
    };
    assert_eq!(count(), 0.0);
    let first = tunnel(&scene);
    is(1.0);
    let (mut caller, backend) = tunnel(&scene);
    is(2.0);
    drop(first);
    is(1.0);
    drop(backend);
    caller.expect_end();
    drop(caller);
    is(0.0);
}
