//! The door: so many at once, and what those hear who do not come in.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::json;

use super::{Answer, SECOND, Scene, get, is_done};

fn worker(settings: &str) -> String {
    format!("[[rule]]\nname = 'worker'\ncapacity = {{ {settings} }}\n")
}

#[tokio::test]
async fn so_many_are_in_and_so_many_wait() {
    let scene = Scene::new(&worker("limit = 2, places = 1"));
    let first = scene.hold("/").await;
    let second = scene.hold("/").await;
    let third = scene.hold("/").await;
    assert_eq!(scene.inside(), (2, 1));
    assert_eq!(scene.called(), 2, "who waits is not served yet");
    scene.get("/").await.assert_shed();
    assert_eq!(scene.called(), 2);
    scene.go(1).await;
    assert_eq!((scene.inside(), scene.called()), ((2, 0), 3));
    scene.go(2).await;
    for answering in [first, second, third] {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!(scene.inside(), (0, 0));
    assert_eq!(scene.tally("worker"), (3, 1, 0));
}

#[tokio::test]
async fn as_many_as_the_limit_may_wait_for_a_second_unless_told_otherwise() {
    let scene = Scene::new(&worker("limit = 3"));
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(scene.hold("/").await);
    }
    assert_eq!(scene.inside(), (3, 3));
    scene.get("/").await.assert_shed();
    scene.advance(SECOND - Duration::from_millis(1)).await;
    assert_eq!(scene.inside(), (3, 3));
    scene.advance(Duration::from_millis(1)).await;
    assert_eq!(scene.inside(), (3, 0));
    for late in all.drain(3..) {
        Answer::of(late).await.assert_shed();
    }
    assert_eq!(scene.tally("worker"), (3, 4, 0));
}

#[tokio::test]
async fn without_places_nobody_waits() {
    let scene = Scene::new(&worker("limit = 1, places = 0"));
    let first = scene.hold("/").await;
    for _ in 0..3 {
        scene.get("/").await.assert_shed();
    }
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.statuses("/", 3).await, [200; 3]);
}

#[tokio::test]
async fn who_has_waited_for_its_time_is_turned_away_and_not_before() {
    let scene = Scene::new(&worker("limit = 1, places = 5, wait = '30s'"));
    let first = scene.hold("/").await;
    let early = scene.hold("/").await;
    scene.advance(SECOND * 10).await;
    let late = scene.hold("/").await;
    scene.advance(SECOND * 20 - Duration::from_millis(1)).await;
    assert!(!is_done(&early).await);
    scene.advance(Duration::from_millis(1)).await;
    Answer::of(early).await.assert_shed();
    assert_eq!(scene.inside(), (1, 1), "each has its own time");
    // There is room before its time is over.
    scene.advance(SECOND * 9).await;
    scene.go(2).await;
    assert_eq!(Answer::of(late).await.status, 200);
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.called(), 2);
}

#[tokio::test]
async fn those_who_are_turned_away_are_told_why_and_when_to_come_back() {
    let scene = Scene::new(&worker("limit = 1, places = 0"));
    let _first = scene.hold("/").await;
    let shed = scene.get("/").await;
    shed.assert_shed();
    assert_eq!(shed.get("content-type"), Some("application/problem+json"));
    assert_eq!(shed.get("cache-control"), Some("no-store"));
    let body = shed.json();
    assert_eq!(body["status"], json!(503));
    assert_eq!(
        body["retry_after"],
        json!(shed.get("retry-after").unwrap().parse::<u64>().unwrap())
    );
    let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    assert_eq!(body["type"], json!(kind));
    assert!(body["title"].is_string() && body["error"].is_string(), "{body}");
    // There is no limit to tell them of.
    assert_eq!((shed.get("ratelimit"), shed.get("ratelimit-policy")), (None, None));
}

#[tokio::test]
async fn a_rule_may_answer_otherwise() {
    let text = worker("limit = 1, places = 0");
    for (on_deny, status) in [
        ("{ status = 529, body = 'full', content_type = 'text/html' }", 529),
        ("{ redirect = '/sorry' }", 303),
        ("{ body = 'later' }", 503),
    ] {
        let scene = Scene::new(&format!("{text}on_deny = {on_deny}\n"));
        let _first = scene.hold("/").await;
        let shed = scene.get("/").await;
        assert_eq!(shed.status, status, "{on_deny}");
        match status {
            529 => assert_eq!(
                (&shed.body[..], shed.get("content-type")),
                (&b"full"[..], Some("text/html"))
            ),
            303 => assert_eq!(shed.get("location"), Some("/sorry")),
            _ => assert_eq!(&shed.body[..], b"later"),
        }
        assert!(shed.get("retry-after").is_some(), "{on_deny}");
    }
}

#[tokio::test]
async fn grpc_clients_hear_that_it_is_unavailable() {
    let text = worker("limit = 1, places = 0") + "on_deny = { status = 418 }\n";
    let scene = Scene::new(&text);
    let _first = scene.hold("/").await;
    let request = Request::post("/pkg.Service/Method").header("content-type", "application/grpc");
    let shed = scene.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((shed.status, shed.get("grpc-status")), (200, Some("14")));
    assert!(shed.headers.contains_key("grpc-message"));
    let seconds = shed.get("retry-after").unwrap();
    assert_eq!(shed.get("grpc-retry-pushback-ms"), Some(format!("{seconds}000").as_str()));
    assert!(shed.body.is_empty());
}

#[tokio::test]
async fn styles_without_fields_leave_the_wait() {
    let text = format!("[headers]\nstyles = ['none']\n{}", worker("limit = 1, places = 0"));
    let scene = Scene::new(&text);
    let _first = scene.hold("/").await;
    scene.get("/").await.assert_shed();
}

#[tokio::test]
async fn other_requests_are_none_of_its_business() {
    let text = worker("limit = 1, places = 0") + "match = { path = '/jobs/*', method = 'GET' }\n";
    let scene = Scene::new(&text);
    let _first = scene.hold("/jobs/a").await;
    assert_eq!(scene.inside(), (1, 0));
    assert_eq!(scene.statuses("/else", 3).await, [200; 3]);
    scene.get("/jobs/b").await.assert_shed();
    scene.get("//jobs/./b/").await.assert_shed();
    let put = Request::put("/jobs/b").body(Body::empty()).unwrap();
    assert_eq!(scene.send(put).await.status, 200);
    assert_eq!(scene.tally("worker"), (1, 2, 0));
}

/// A browser that asks before it sends is exempt from rules that do not name its method.
#[tokio::test]
async fn browsers_may_ask_before_they_send() {
    let scene = Scene::new(&worker("limit = 1, places = 0"));
    let _first = scene.hold("/").await;
    let preflight = Request::options("/")
        .header("origin", "https://a.example")
        .header("access-control-request-method", "PUT");
    assert_eq!(scene.send(preflight.body(Body::empty()).unwrap()).await.status, 200);
    let plain = Request::options("/").body(Body::empty()).unwrap();
    scene.send(plain).await.assert_shed();
}

#[tokio::test]
async fn a_shadow_lets_everybody_pass_and_counts() {
    let scene = Scene::new(&(worker("limit = 2, places = 0") + "shadow = true\n"));
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(scene.hold("/").await);
    }
    assert_eq!((scene.inside().0, scene.called()), (5, 5));
    scene.go(5).await;
    for answering in all {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!(scene.inside(), (0, 0));
    assert_eq!(scene.send(get("/", "status=500")).await.status, 500);
    let (_, denied, would_have) = scene.tally("worker");
    assert_eq!((denied, would_have), (0, 3), "{:?}", scene.tally("worker"));
}
