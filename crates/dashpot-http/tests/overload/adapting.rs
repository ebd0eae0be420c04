//! A capacity that finds itself, by how requests fare in the layer.

use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt;

use super::{Answering, SECOND, Scene, get, settle};

const MS: Duration = Duration::from_millis(1);

fn worker(settings: &str) -> Scene {
    Scene::new(&format!(
        "[[priority]]\nname = 'hook'\nmatch.path = '/hook'\nweight = 'unlimited'\n\
         [[rule]]\nname = 'worker'\ncapacity = {{ limit = 20, latency = '100ms', {settings} }}\n"
    ))
}

/// So many come at once and are held.
async fn come(scene: &Scene, words: &str, count: usize) -> Vec<Answering> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(scene.begin(get("/", words)).await);
    }
    all
}

/// So many come at once, and are answered after this time.
async fn round(scene: &Scene, words: &str, count: usize, after: Duration) {
    let all = come(scene, &format!("hold {words}"), count).await;
    scene.advance(after).await;
    scene.go(count).await;
    for answering in all {
        let _ = answering.await;
    }
    settle().await;
}

/// Time for a round to be judged: its tick is over, and all have had their time. Somebody else comes by then.
async fn judged(scene: &Scene) -> u64 {
    scene.advance(MS * 300).await;
    scene.get("/").await;
    scene.gate().limit
}

#[tokio::test]
async fn a_limit_that_is_used_and_kept_grows_by_one() {
    let scene = worker("places = 0");
    for expected in [21, 22, 23] {
        round(&scene, "", 20, MS * 50).await;
        assert_eq!(judged(&scene).await, expected);
    }
}

#[tokio::test]
async fn a_limit_that_is_not_used_does_not_grow() {
    let scene = worker("places = 0");
    for _ in 0..5 {
        for _ in 0..12 {
            scene.get("/").await;
        }
        assert_eq!(judged(&scene).await, 20);
    }
}

/// A tenth is two of twenty; four might be chance, and six are not.
#[tokio::test]
async fn clearly_more_than_a_tenth_that_is_slow_makes_it_smaller() {
    for (slow, expected) in [(2, 21), (4, 21), (6, 18), (20, 18)] {
        let scene = worker("places = 0");
        let mut all = come(&scene, "hold", 20).await;
        scene.advance(MS * 90).await;
        scene.go(20 - slow).await;
        scene.advance(MS * 11).await;
        scene.go(slow).await;
        assert_eq!(judged(&scene).await, expected, "{slow} of 20");
        all.clear();
    }
}

/// Be they stuck: nobody has to answer to be slow.
#[tokio::test]
async fn those_who_never_answer_are_slow() {
    let scene = worker("places = 0");
    let _stuck = come(&scene, "hold", 10).await;
    judged(&scene).await;
    assert_eq!(judged(&scene).await, 18);
    assert_eq!(scene.inside().0, 10);
    // What began before is not held against the new limit.
    for _ in 0..5 {
        for _ in 0..12 {
            scene.get("/").await;
        }
        assert!(judged(&scene).await >= 18);
    }
}

/// Also if they fill it, so that nobody else comes in.
#[tokio::test]
async fn those_who_never_answer_and_fill_it_are_slow() {
    for places in [20, 0] {
        let scene = worker(&format!("places = {places}"));
        let _stuck = come(&scene, "hold", 20).await;
        for _ in 0..10 {
            let waiting = scene.begin(get("/", "")).await;
            scene.advance(MS * 300).await;
            drop(waiting);
        }
        assert_eq!(scene.gate().limit, 18, "with {places} places");
    }
}

#[tokio::test]
async fn failures_make_it_smaller() {
    for (words, status) in
        [("status=500", 18), ("fail", 18), ("status=404", 21), ("status=429", 21)]
    {
        let scene = worker("places = 0");
        round(&scene, words, 20, MS * 50).await;
        assert_eq!(judged(&scene).await, status, "{words}");
    }
    // One of twenty is a twentieth; two might be chance, and five are not.
    for (failures, expected) in [(1, 21), (2, 21), (5, 18)] {
        let scene = worker("places = 0");
        let mut all = come(&scene, "hold status=500", failures).await;
        all.extend(come(&scene, "hold", 20 - failures).await);
        scene.advance(MS * 50).await;
        scene.go(20).await;
        assert_eq!(judged(&scene).await, expected, "{failures} of 20");
    }
    let scene = worker("places = 0, errors = '50%'");
    round(&scene, "status=500", 20, MS * 50).await;
    assert_eq!(judged(&scene).await, 18);
}

#[tokio::test]
async fn handlers_that_panic_have_failed() {
    let scene = worker("places = 0");
    round(&scene, "panic", 20, MS * 50).await;
    assert_eq!(judged(&scene).await, 18);
}

/// Who hangs up at once is no failure of the service: nobody closes the door for others that way.
#[tokio::test]
async fn callers_who_hang_up_early_do_not_make_it_smaller() {
    let scene = worker("places = 0");
    for _ in 0..5 {
        for answering in come(&scene, "hold", 20).await {
            answering.abort();
        }
        settle().await;
        assert!(judged(&scene).await >= 20);
    }
}

/// Who hangs up after too long has waited for too long.
#[tokio::test]
async fn callers_who_hang_up_late_make_it_smaller() {
    let scene = worker("places = 0");
    let all = come(&scene, "hold", 20).await;
    scene.advance(MS * 101).await;
    all.iter().for_each(|answering| answering.abort());
    settle().await;
    assert_eq!(judged(&scene).await, 18);
}

/// Time is taken until the answer begins: a long body is not a late answer.
#[tokio::test]
async fn bodies_may_take_their_time() {
    let scene = worker("places = 0");
    let mut bodies = Vec::new();
    for _ in 0..20 {
        bodies.push(scene.open(get("/", "stream")).await.into_body());
    }
    scene.advance(SECOND).await;
    for feeder in scene.work.feeders.lock().unwrap().drain(..) {
        feeder.send(Bytes::from("late")).unwrap();
    }
    for body in bodies {
        body.collect().await.unwrap();
    }
    assert_eq!(judged(&scene).await, 21);
}

/// The time in line is not the service's: else a line would make itself longer.
#[tokio::test]
async fn waiting_in_line_is_not_slow() {
    let scene = worker("places = 60, wait = '1min'");
    for _ in 0..4 {
        let _all = come(&scene, "hold", 60).await;
        assert!(scene.inside().1 >= 30);
        // All are served within 60 ms, and the last have waited for twice as long.
        for _ in 0..4 {
            scene.advance(MS * 60).await;
            let inside = usize::try_from(scene.inside().0).unwrap();
            scene.go(inside).await;
        }
        assert_eq!(scene.inside(), (0, 0));
        assert!(judged(&scene).await >= 20, "{}", scene.gate().limit);
    }
    assert!(scene.gate().limit > 20);
}

#[tokio::test]
async fn it_stays_within_its_bounds() {
    let scene = worker("places = 0, min = 18, max = 21");
    for _ in 0..4 {
        round(&scene, "", 18, MS * 10).await;
        assert!(judged(&scene).await <= 21);
    }
    assert_eq!(scene.gate().limit, 21);
    for _ in 0..6 {
        round(&scene, "status=500", 18, MS * 10).await;
        judged(&scene).await;
    }
    assert_eq!(scene.gate().limit, 18);
}

/// A limit that does not adapt stays what it is, whatever happens.
#[tokio::test]
async fn without_a_latency_it_is_what_it_says() {
    let scene = Scene::new("[[rule]]\nname = 'worker'\ncapacity = { limit = 10, places = 0 }\n");
    for words in ["", "status=500"] {
        for _ in 0..4 {
            round(&scene, words, 10, SECOND * 5).await;
            scene.advance(SECOND * 5).await;
        }
    }
    assert_eq!(scene.gate().limit, 10);
}

/// A smaller limit is kept to at once, and who is in stays in.
#[tokio::test]
async fn a_smaller_limit_is_kept_to() {
    let scene = worker("places = 0");
    let _stuck = come(&scene, "hold", 19).await;
    judged(&scene).await;
    judged(&scene).await;
    assert_eq!((scene.gate().limit, scene.inside().0), (18, 19));
    scene.get("/").await.assert_shed();
    scene.go(1).await;
    scene.get("/").await.assert_shed();
    scene.go(1).await;
    assert_eq!(scene.get("/").await.status, 200);
}
