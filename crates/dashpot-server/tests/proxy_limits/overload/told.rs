//! What whoever is turned away hears.

use http::Request;

use super::{Scene, assert_no_room, worker};
use crate::access_log::{lines, parts};
use crate::caller::Answer;
use crate::http2::Connection;

const FULL: &str = "limit = 1, places = 0";

/// What the next one hears, by a rule of one with these lines.
fn denied(before: &str, rule: &str) -> Answer {
    let scene = Scene::by(&format!("{before}\n{}{rule}\n", worker(FULL)));
    let _held = scene.hold("/hold/1", "");
    scene.proxy.caller().ask("GET", "/", &["origin: https://a.example"], "")
}

#[test]
fn there_is_no_room_and_when_to_come_again() {
    let denied = denied("", "");
    assert_no_room(&denied);
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    let told = denied.json();
    assert_eq!(told["retry_after"], denied.retry_after(), "{told}");
    assert!(told["title"].is_string() && told["detail"].is_string(), "{told}");
    assert!(told["error"].is_string() && told["message"].is_string(), "{told}");
    // Scripts of other origins may know when to come again.
    let head = denied.head.to_lowercase();
    let mut exposed =
        head.lines().filter(|line| line.starts_with("access-control-expose-headers:"));
    assert!(exposed.any(|line| line.contains("retry-after")), "{denied:?}");
}

#[test]
fn what_the_rule_says_instead() {
    let other = denied("", "on_deny = { status = 529 }");
    assert_eq!(other.status, 529, "{other:?}");
    assert!(other.retry_after() >= 1);
    let body = "on_deny = { body = 'Full.', content_type = 'text/x-full' }";
    let other = denied("", body);
    assert_eq!((other.status, other.text().as_str()), (503, "Full."), "{other:?}");
    assert_eq!(other.header("content-type"), Some("text/x-full"));
    assert!(other.retry_after() >= 1);
    let other = denied("", "on_deny = { redirect = '/queue' }");
    assert_eq!((other.status, other.header("location")), (303, Some("/queue")), "{other:?}");
}

/// Not all are to come back at once.
#[test]
fn jitter_is_added_here_too() {
    let scene = Scene::by(&format!("[headers]\njitter = '1h'\n{}", worker(FULL)));
    let _held = scene.hold("/hold/1", "");
    let waits: Vec<_> = (0..8).map(|_| scene.get("/", "").retry_after()).collect();
    assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
}

#[test]
fn a_head_is_told_without_a_body() {
    let scene = Scene::by(&worker(FULL));
    let _held = scene.hold("/hold/1", "");
    let mut caller = scene.proxy.caller();
    assert_eq!(caller.ask("HEAD", "/", &[], "").status, 503);
    // The next answer begins where it should.
    assert_no_room(&caller.get("/"));
}

/// A body that nobody reads is no reason not to be told.
#[test]
fn who_sends_a_body_is_told_too() {
    let scene = Scene::by(&worker(FULL));
    let _held = scene.hold("/hold/1", "");
    for length in [1, 1000, 200_000] {
        let told = scene.proxy.caller().ask("POST", "/", &[], &"x".repeat(length));
        assert_no_room(&told);
    }
    assert_eq!(scene.backend.count(), 1);
}

#[test]
fn a_grpc_client_is_told_in_its_own_words() {
    let scene = Scene::by(&worker(FULL));
    let _held = scene.hold("/hold/1", "");
    let mut connection = Connection::to(&scene.proxy);
    let request =
        Request::post("http://localhost/a.B/C").header("content-type", "application/grpc");
    let (head, body) = connection.ask(request.body(()).unwrap());
    assert_eq!(head.status, 200);
    assert_eq!(head.headers["grpc-status"], "14", "UNAVAILABLE: {head:?}");
    assert!(head.headers.contains_key("grpc-message"), "{head:?}");
    let pushback: u64 = head.headers["grpc-retry-pushback-ms"].to_str().unwrap().parse().unwrap();
    assert!(pushback >= 1000, "{head:?}");
    assert!(body.is_empty());
    assert_eq!(scene.backend.count(), 1);
}

/// With an answer of its own for others, a gRPC client is still one.
#[test]
fn a_grpc_client_is_told_so_whatever_others_are_told() {
    let scene = Scene::by(&format!("{}on_deny = {{ status = 529 }}\n", worker(FULL)));
    let _held = scene.hold("/hold/1", "");
    let mut connection = Connection::to(&scene.proxy);
    let request =
        Request::post("http://localhost/a.B/C").header("content-type", "application/grpc+proto");
    let (head, _) = connection.ask(request.body(()).unwrap());
    assert_eq!((head.status.as_u16(), &head.headers["grpc-status"]), (200, &"14".parse().unwrap()));
}

#[test]
fn a_caller_by_http2_is_told_the_same() {
    let scene = Scene::by(&worker(FULL));
    let _held = scene.hold("/hold/1", "");
    let mut connection = Connection::to(&scene.proxy);
    let request = Request::get("http://localhost/").body(()).unwrap();
    let (head, body) = connection.ask(request);
    assert_eq!((head.status.as_u16(), &head.headers["retry-after"]), (503, &"1".parse().unwrap()));
    let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(told["status"], 503, "{told}");
}

/// In the access log and in the metrics it is an answer like others.
#[test]
fn it_is_noted() {
    let scene = Scene::with(&worker(FULL), &["--access-log", "log"]);
    let mut held = scene.hold("/hold/1", "");
    let body = scene.get("/full", "").body.len().to_string();
    let told = lines(&scene.proxy, 1);
    let expected = ["127.0.0.1", "GET", "/full", "HTTP/1.1", "503", &body];
    assert_eq!(parts(&told[0]), expected.map(str::to_owned));
    let series = r#"dashpot_http_answers_total{door="proxy",status="5xx"}"#;
    scene.proxy.await_metric(series, 1.0);
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
}
