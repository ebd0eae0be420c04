//! One request, one answer: what is asked first, and who is counted as what.

use axum::body::Body;
use http::Request;

use super::{Answer, Scene, get};

const RULES: &str = "
[block]
'header:user-agent' = 'BadBot'
[[priority]]
name = 'pay'
match.path = '/pay'
class = 'critical'
[[rule]]
name = 'rate'
limits = '3/h'
algorithm = 'fixed-window'
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 0 }
";

fn from_bot(path: &str) -> Request<Body> {
    Request::get(path).header("user-agent", "BadBot").body(Body::empty()).unwrap()
}

#[tokio::test]
async fn the_blocked_hear_that_they_are_and_take_no_place() {
    let scene = Scene::new(RULES);
    assert_eq!(scene.send(from_bot("/")).await.status, 403);
    let _first = scene.hold("/").await;
    assert_eq!(scene.send(from_bot("/")).await.status, 403, "also where there is no room");
    assert_eq!(scene.inside(), (1, 0));
    assert_eq!(scene.tally("worker"), (1, 0, 0));
}

/// Who finds neither room nor a place is turned away before anything is asked; else rules with limits are asked first.
#[tokio::test]
async fn who_is_over_a_limit_takes_no_place() {
    let scene = Scene::new(RULES);
    assert_eq!(scene.statuses("/", 2).await, [200; 2]);
    let first = scene.hold("/").await;
    scene.get("/").await.assert_shed();
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.get("/").await.status, 429);
    assert_eq!(scene.inside(), (0, 0));
    assert_eq!(scene.tally("worker"), (3, 1, 0));
    assert_eq!(scene.tally("rate"), (3, 1, 0));
}

#[tokio::test]
async fn who_lacks_a_fact_hears_of_that() {
    let text =
        RULES.replace("limits = '3/h'", "by = 'header:x-team'\nabsent = 'deny'\nlimits = '3/h'");
    let scene = Scene::new(&text);
    assert_eq!(scene.get("/").await.status, 403);
    assert_eq!((scene.inside(), scene.tally("worker")), ((0, 0), (0, 0, 0)));
}

#[tokio::test]
async fn each_request_of_a_priority_is_counted_once() {
    let scene = Scene::new(RULES);
    let first = scene.hold("/pay").await;
    scene.get("/pay").await.assert_shed();
    scene.go(1).await;
    Answer::of(first).await;
    assert_eq!(scene.statuses("/pay", 4).await, [200, 200, 429, 429]);
    scene.get("/").await;
    assert_eq!(scene.priority("pay"), (3, 3));
    assert_eq!(scene.send(from_bot("/pay")).await.status, 403);
}

#[tokio::test]
async fn who_hangs_up_in_line_is_not_counted_as_turned_away() {
    let scene = Scene::new(&RULES.replace("places = 0", "places = 5").replace("3/h", "30/h"));
    let first = scene.hold("/pay").await;
    for _ in 0..3 {
        scene.hold("/pay").await.abort();
    }
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.tally("worker").1, 0);
    assert_eq!(scene.priority("pay").1, 0);
}

/// What is served tells of the limits as ever: a door changes no headers.
#[tokio::test]
async fn headers_are_as_they_would_be_without_a_door() {
    let rate = "[[rule]]\nname = 'rate'\nlimits = '3/h'\nalgorithm = 'fixed-window'\n";
    let plain = Scene::new(rate);
    let gated = Scene::new(&format!("{rate}[[rule]]\nname = 'w'\ncapacity.limit = 1\n"));
    for _ in 0..4 {
        let (one, other) = (plain.get("/").await, gated.get("/").await);
        assert_eq!((one.status, &one.headers), (other.status, &other.headers));
        assert_eq!(one.body, other.body);
    }
}

/// The one it is turned away by is the one that is told, with the limits it has.
#[tokio::test]
async fn who_is_turned_away_is_told_nothing_wrong_about_its_limits() {
    let scene = Scene::new(RULES);
    let _first = scene.hold("/").await;
    let shed = scene.get("/").await;
    shed.assert_shed();
    // One of three is used, by the one who is in; if it is told, then so.
    if let Some(told) = shed.get("ratelimit") {
        assert!(told.contains("r=2"), "{told}");
    }
    let violated = &shed.json()["violated-policies"];
    assert!(!violated.to_string().contains("rate"), "{violated}");
}

#[tokio::test]
async fn an_inner_service_that_says_503_itself_is_left_alone() {
    let scene = Scene::new(RULES);
    let answer = scene.send(get("/", "status=503")).await;
    assert_eq!((answer.status, &answer.body[..]), (503, &b"served"[..]));
    assert_eq!(answer.get("retry-after"), None);
    assert_eq!(scene.tally("worker"), (1, 0, 0));
}
