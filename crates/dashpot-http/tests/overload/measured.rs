//! What the layer sees of the requests that a rule lets pass.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Waker};
use std::time::Duration;

use axum::body::{Body, Bytes};
use dashpot::Percent;
use http::Request;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::{Answer, SECOND, Scene, get, settle};

const MS: Duration = Duration::from_millis(1);

const RULES: &str = "
[[rule]]
name = 'api'
match.path = '/api'
limits = '1000/h'
adaptive = { cpu = 'off', latency = '100ms' }
";

/// The factor after one more second.
async fn tick(scene: &Scene) -> u8 {
    scene.advance(SECOND).await;
    scene.adaptive().percent()
}

async fn send(scene: &Scene, words: &str, count: usize) {
    for _ in 0..count {
        let _ = scene.begin(get("/api", words)).await.await;
        settle().await;
    }
}

#[tokio::test]
async fn answers_of_5xx_are_failures() {
    for status in ["500", "502", "503", "504", "599"] {
        let scene = Scene::new(RULES);
        send(&scene, "", 18).await;
        send(&scene, &format!("status={status}"), 2).await;
        assert_eq!(tick(&scene).await, 90, "{status}");
        assert_eq!(scene.adaptive().vitals().errors, Some(Percent::new(10)));
    }
    for status in ["200", "404", "429", "499"] {
        let scene = Scene::new(RULES);
        send(&scene, &format!("status={status}"), 20).await;
        assert_eq!(tick(&scene).await, 100, "{status}");
        assert_eq!(scene.adaptive().vitals().errors, Some(Percent::new(0)));
    }
}

#[tokio::test]
async fn errors_of_the_service_are_failures() {
    let scene = Scene::new(RULES);
    send(&scene, "", 18).await;
    send(&scene, "fail", 2).await;
    assert_eq!(tick(&scene).await, 90);
}

/// They end without an answer.
#[tokio::test]
async fn handlers_that_panic_are_failures() {
    let scene = Scene::new(RULES);
    send(&scene, "", 18).await;
    send(&scene, "panic", 2).await;
    assert_eq!(tick(&scene).await, 90);
}

#[tokio::test]
async fn each_request_counts_once_and_only_where_it_matches() {
    let scene = Scene::new(RULES);
    send(&scene, "", 19).await;
    for _ in 0..50 {
        scene.send(get("/other", "status=500")).await;
    }
    assert_eq!(tick(&scene).await, 100);
    assert_eq!(scene.adaptive().vitals().errors, None, "there are nineteen");
    send(&scene, "", 1).await;
    tick(&scene).await;
    assert_eq!(scene.adaptive().vitals().errors, Some(Percent::new(0)));
}

/// Those it denies say nothing about the service.
#[tokio::test]
async fn those_who_are_denied_are_not_seen() {
    let scene = Scene::new(&RULES.replace("1000/h", "19/h"));
    send(&scene, "", 100).await;
    assert_eq!(scene.tally("api"), (19, 81, 0));
    tick(&scene).await;
    assert_eq!(scene.adaptive().vitals().errors, None);
    // Nor are those whom another rule denies.
    let other = "[[rule]]\nname = 'other'\nlimits = '5/h'\n";
    let scene = Scene::new(&format!("{RULES}{other}"));
    send(&scene, "status=500", 40).await;
    assert_eq!(tick(&scene).await, 100);
}

/// Nor those who are turned away at the door: that is no failure of the service, or it would feed itself.
#[tokio::test]
async fn those_who_are_turned_away_at_the_door_are_not_seen() {
    let door = "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 1, wait = '10ms' }\n";
    let scene = Scene::new(&format!("{RULES}{door}"));
    let _first = scene.hold("/api").await;
    for _ in 0..30 {
        let late = scene.hold("/api").await;
        scene.get("/api").await.assert_shed();
        scene.advance(MS * 10).await;
        Answer::of(late).await.assert_shed();
    }
    assert_eq!(tick(&scene).await, 100);
    assert_eq!(scene.adaptive().vitals().errors, None);
}

#[tokio::test]
async fn time_is_taken_until_the_answer_begins() {
    for (late, percent) in [(1, 100), (3, 90)] {
        let scene = Scene::new(RULES);
        send(&scene, "", 20 - late).await;
        let mut all = Vec::new();
        for _ in 0..late {
            all.push(scene.hold("/api").await);
        }
        scene.advance(MS * 101).await;
        scene.go(late).await;
        for answering in all {
            Answer::of(answering).await;
        }
        assert_eq!(tick(&scene).await, percent, "{late} of 20");
    }
}

/// A long body is not a late answer.
#[tokio::test]
async fn bodies_may_take_their_time() {
    let scene = Scene::new(RULES);
    for _ in 0..20 {
        let response = scene.open(get("/api", "stream")).await;
        scene.advance(MS * 20).await;
        let feeder = scene.work.feeders.lock().unwrap().pop().unwrap();
        feeder.send(Bytes::from("some")).unwrap();
        scene.advance(MS * 200).await;
        drop(feeder);
        response.into_body().collect().await.unwrap();
    }
    scene.advance(SECOND).await;
    assert_eq!(scene.adaptive().percent(), 100);
}

/// Who hangs up cannot make everybody's limits shrink; who did so after too long tells of it.
#[tokio::test]
async fn callers_who_hang_up() {
    let scene = Scene::new(RULES);
    for _ in 0..40 {
        scene.hold("/api").await.abort();
        settle().await;
    }
    assert_eq!(tick(&scene).await, 100);
    let mut all = Vec::new();
    for _ in 0..40 {
        all.push(scene.hold("/api").await);
    }
    scene.advance(MS * 101).await;
    all.iter().for_each(|answering| answering.abort());
    settle().await;
    assert_eq!(tick(&scene).await, 90);
}

/// Several rules that adapt see the same request, each for itself.
#[tokio::test]
async fn every_rule_sees_its_own_requests() {
    let other = "[[rule]]\nname = 'all'\nlimits = '5000/h'\nadaptive = { cpu = 'off' }\n";
    let scene = Scene::new(&format!("{RULES}{other}"));
    for _ in 0..30 {
        scene.send(get("/else", "status=500")).await;
    }
    scene.advance(SECOND).await;
    let current = scene.live.current();
    let percents: Vec<_> = current
        .rules()
        .iter()
        .filter_map(|rule| rule.adaptive())
        .map(|one| one.percent())
        .collect();
    assert_eq!(percents, [100, 90]);
}

/// Those who are never limited are not what the rule has let pass.
#[tokio::test]
async fn a_shadow_that_adapts_sees_too() {
    let scene = Scene::new(&format!("{RULES}shadow = true\n"));
    send(&scene, "status=500", 30).await;
    assert_eq!(tick(&scene).await, 90);
}

/// gRPC says of itself how it went, in a 200; that is an answer.
#[tokio::test]
async fn an_answer_is_judged_by_its_status() {
    let scene = Scene::new(RULES);
    for _ in 0..30 {
        let request = Request::post("/api").header("content-type", "application/grpc");
        scene.send(request.body(Body::empty()).unwrap()).await;
    }
    assert_eq!(tick(&scene).await, 100);
}

/// Somebody further out may catch the panic, and drop what is left of the request when it is over.
#[tokio::test]
async fn handlers_whose_panic_is_caught_are_failures() {
    let scene = Scene::new(RULES);
    send(&scene, "", 18).await;
    for _ in 0..2 {
        let mut answering = Box::pin(scene.service.clone().oneshot(get("/api", "panic")));
        let mut context = Context::from_waker(Waker::noop());
        let polled = AssertUnwindSafe(|| answering.as_mut().poll(&mut context).is_ready());
        assert!(catch_unwind(polled).is_err());
        drop(answering);
    }
    assert_eq!(tick(&scene).await, 90);
}
