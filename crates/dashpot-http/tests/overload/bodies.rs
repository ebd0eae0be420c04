//! Bodies that are needed for a key, and a door.

use axum::body::{Body, Bytes};
use http::Request;
use tokio::sync::mpsc::unbounded_channel;

use super::{Answer, Fed, Feeder, SECOND, Scene, settle};

const RULES: &str = "
[[rule]]
name = 'email'
by = 'json:email'
limits = '5/h'
algorithm = 'fixed-window'
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 1, wait = '10s' }
";

const ALICE: &str = r#"{"email":"alice@example.com"}"#;

fn post(words: &str, body: Body) -> Request<Body> {
    let request = Request::post("/").header("content-type", "application/json");
    request.header("x-do", words).body(body).unwrap()
}

/// A request whose body comes as it is fed.
fn slow_post(words: &str) -> (Request<Body>, Feeder) {
    let (feeder, food) = unbounded_channel();
    (post(words, Body::new(Fed(food))), feeder)
}

/// What is left to this caller, of which the question itself takes one.
async fn left(scene: &Scene) -> u64 {
    let answer = scene.send(post("", Body::from(ALICE))).await;
    assert_eq!(answer.status, 200);
    let told = answer.get("ratelimit").unwrap();
    told.split(';').find_map(|part| part.strip_prefix("r=")).unwrap().parse::<u64>().unwrap() + 1
}

#[tokio::test]
async fn who_has_not_sent_its_body_is_not_in() {
    let scene = Scene::new(RULES);
    let (request, feeder) = slow_post("echo");
    let slow = scene.begin(request).await;
    assert_eq!(scene.inside(), (0, 0));
    assert_eq!(scene.send(post("", Body::from(ALICE))).await.status, 200);
    feeder.send(Bytes::from(ALICE)).unwrap();
    drop(feeder);
    assert_eq!(Answer::of(slow).await.body, ALICE);
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn the_body_is_whole_after_a_wait() {
    let scene = Scene::new(RULES);
    let first = scene.hold("/").await;
    let (request, feeder) = slow_post("echo");
    let waits = scene.begin(request).await;
    feeder.send(Bytes::from(&ALICE[..10])).unwrap();
    settle().await;
    feeder.send(Bytes::from(&ALICE[10..])).unwrap();
    drop(feeder);
    settle().await;
    assert_eq!(scene.inside(), (1, 1));
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(waits).await.body, ALICE);
}

#[tokio::test]
async fn who_is_turned_away_gets_back_what_it_took() {
    let scene = Scene::new(RULES);
    let first = scene.hold("/").await;
    for _ in 0..4 {
        let late = scene.begin(post("", Body::from(ALICE))).await;
        assert_eq!(scene.inside(), (1, 1));
        scene.send(post("", Body::from(ALICE))).await.assert_shed();
        scene.advance(SECOND * 10).await;
        Answer::of(late).await.assert_shed();
    }
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(left(&scene).await, 5);
}

#[tokio::test]
async fn who_hangs_up_within_its_body_or_in_line_leaves_nothing_behind() {
    let scene = Scene::new(RULES);
    let (request, feeder) = slow_post("");
    let slow = scene.begin(request).await;
    slow.abort();
    settle().await;
    drop(feeder);
    let first = scene.hold("/").await;
    let waits = scene.begin(post("", Body::from(ALICE))).await;
    waits.abort();
    settle().await;
    assert_eq!(scene.inside(), (1, 0));
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!((scene.inside(), scene.called()), ((0, 0), 1));
}

/// Whoever is over a limit that needs the body hears of that, and takes no place.
#[tokio::test]
async fn who_is_over_a_limit_by_its_body_takes_no_place() {
    let scene = Scene::new(RULES);
    for n in 0..7 {
        let status = scene.send(post("", Body::from(ALICE))).await.status;
        assert_eq!(status, if n < 5 { 200 } else { 429 }, "{n}");
        assert_eq!(scene.inside(), (0, 0));
    }
    assert_eq!(scene.tally("worker"), (5, 0, 0));
}
