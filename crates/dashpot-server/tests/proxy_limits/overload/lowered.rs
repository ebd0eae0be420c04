//! Limits of callers that are lower while the service suffers, as the gateway tells of them.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;
use http::Request;
use serde_json::json;

use super::{Scene, assert_no_room};
use crate::caller::{Answer, PATIENCE};
use crate::http2::Connection;
use crate::pace::assert_paced;

const QUICK: &str = "adaptive = { cpu = 'off', tick = '10ms', down = '50%', up = '200%' }\n";

fn rule(name: &str, lines: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{QUICK}{lines}\n")
}

/// At half of its limits, with nothing left.
fn used_up(lines: &str) -> Scene {
    let scene = Scene::by(&rule("r", &format!("limits = ['10/day']\n{lines}")));
    scene.tell(1, "r", 0.5);
    for _ in 0..5 {
        assert_eq!(scene.get("/", "").status, 200);
    }
    scene
}

#[test]
fn who_is_denied_hears_503_and_when_to_come_again() {
    let scene = used_up("");
    let denied = scene.get("/", "");
    assert_no_room(&denied);
    assert!((17_000..=17_280).contains(&denied.retry_after()), "{denied:?}");
    assert_eq!(denied.header("ratelimit-policy"), Some(r#""r";q=5;w=86400"#));
    assert_eq!(denied.json()["violated-policies"], json!(["r"]));
    assert_eq!(scene.count("r", "denied"), 1.0);
    // The whole limit denies by 429, as ever.
    scene.tell(0, "r", 1.0);
    let denied = scene.get("/", "");
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.header("ratelimit-policy"), Some(r#""r";q=10;w=86400"#));
    assert!(denied.text().contains("#quota-exceeded"), "{denied:?}");
}

#[test]
fn who_passes_is_told_the_lower_limit() {
    let scene = Scene::by(&rule("r", "limits = ['10/day']"));
    scene.tell(1, "r", 0.5);
    let answer = scene.get("/", "");
    assert_eq!((answer.status, answer.left()), (200, 4));
    assert_eq!(answer.header("ratelimit-policy"), Some(r#""r";q=5;w=86400"#));
}

#[test]
fn what_the_rule_says_instead() {
    let scene = used_up("on_deny = { status = 420, body = 'Later.' }");
    let denied = scene.get("/", "");
    assert_eq!((denied.status, denied.text().as_str()), (420, "Later."), "{denied:?}");
    assert!(denied.retry_after() > 17_000);
}

#[test]
fn a_grpc_client_hears_that_it_is_unavailable() {
    let scene = used_up("");
    let mut connection = Connection::to(&scene.proxy);
    let request =
        Request::post("http://localhost/a.B/C").header("content-type", "application/grpc");
    let (head, _) = connection.ask(request.body(()).unwrap());
    assert_eq!((head.status.as_u16(), &head.headers["grpc-status"]), (200, &"14".parse().unwrap()));
    assert!(head.headers.contains_key("grpc-retry-pushback-ms"), "{head:?}");
}

/// A rule that has all of its limit denies by 429 beside one that has not.
#[test]
fn it_is_told_by_the_rule_that_denied() {
    let rules = rule("low", "limits = ['10/day']\nmatch = { path = '/low/*' }")
        + "[[rule]]\nname = 'fixed'\nlimits = ['3/day']\nmatch = { path = '/*/fixed' }\n";
    let scene = Scene::by(&rules);
    scene.tell(1, "low", 0.5);
    let statuses: Vec<_> = (0..4).map(|_| scene.get("/low/fixed", "").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    let statuses: Vec<_> = (0..4).map(|_| scene.get("/low/other", "").status).collect();
    assert_eq!(statuses, [200, 200, 503, 503]);
    assert_eq!(scene.get("/other/fixed", "").status, 429);
}

#[test]
fn permits_are_fewer() {
    let scene = Scene::by(&rule("r", "limits = ['4 concurrent']"));
    scene.tell(1, "r", 0.5);
    let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    let denied = scene.get("/", "");
    assert_eq!(denied.status, 503, "{denied:?}");
    scene.tell(0, "r", 1.0);
    let _more = [scene.hold("/hold/3", ""), scene.hold("/hold/4", "")];
    assert_eq!(scene.get("/", "").status, 429);
}

/// Those who have theirs keep them, and nobody gets one until fewer are out than may be.
#[test]
fn permits_that_are_out_stay_out() {
    let scene = Scene::by(&rule("r", "limits = ['4 concurrent']"));
    let mut held: Vec<_> = (0..4).map(|nth| scene.hold(&format!("/hold/{nth}"), "")).collect();
    scene.tell(1, "r", 0.5);
    for (nth, caller) in held.iter_mut().enumerate() {
        if nth < 3 {
            assert_eq!(scene.get("/", "").status, 503, "after {nth}");
        }
        scene.stage.release(&format!("/hold/{nth}"));
        assert_eq!(caller.answer().status, 200);
    }
    until("a permit", PATIENCE, || (scene.get("/", "").status == 200).then_some(()));
}

/// Nobody knows when there will be more of it.
#[test]
fn a_cost_that_only_the_whole_limit_lets_pass_is_denied_without_a_wait() {
    let scene = Scene::by(&rule("r", "limits = ['10/day']\ncost = 6"));
    scene.tell(1, "r", 0.5);
    let denied: Answer = scene.get("/", "");
    assert_eq!((denied.status, denied.header("retry-after")), (503, None), "{denied:?}");
    scene.tell(0, "r", 1.0);
    assert_eq!(scene.get("/", "").status, 200);
}

/// At the admin port the service answers, and says 429.
#[test]
fn the_admin_port_goes_by_the_same_factor_and_says_429() {
    let scene = used_up("");
    let answer = scene.proxy.admin_post("/v1/check", r#"{"request":{"path":"/"}}"#);
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["policies"][0]["limit"], 5, "{answer:?}");
}

/// A queue moves as slowly as its limit says: half as fast.
#[test]
fn those_who_wait_in_a_queue_leave_further_apart() {
    let queue = "limits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 9";
    let interval = Duration::from_millis(200);
    until("nobody to be late", PATIENCE, || {
        let scene = Scene::by(&rule("r", queue));
        scene.tell(1, "r", 0.5);
        let sent = Instant::now();
        let mut callers: Vec<_> = (0..4).map(|_| scene.send("/", "")).collect();
        for caller in &mut callers {
            assert_eq!(caller.answer().status, 200);
        }
        let seen = scene.backend.seen();
        // On a machine that stalls they come late; if they always do, the queue is too slow.
        let due = seen[0].at + interval * 4 / 5;
        if (0_u32..).zip(&seen).any(|(nth, seen)| seen.at > due + interval * nth) {
            return None;
        }
        assert_paced(&seen, sent, interval, 0);
        Some(())
    });
}
