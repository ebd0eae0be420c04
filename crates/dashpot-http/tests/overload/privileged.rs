//! Those who are never turned away: they pass, and take up room all the same.

use axum::body::Body;
use dashpot_http::Facts;
use http::Request;

use super::{Answer, Scene, get};

const RULES: &str = "
[allow]
user = 'monitoring'
[[priority]]
name = 'hook'
match.path = '/hook'
weight = 'unlimited'
class = 'background'
[[rule]]
name = 'rate'
limits = '100/h'
algorithm = 'fixed-window'
adaptive = { cpu = 'off' }
[[rule]]
name = 'fleet'
limits = '4 concurrent'
classes = { normal = '50%', background = '25%' }
[[rule]]
name = 'worker'
capacity = { limit = 2, places = 1, wait = '1min' }
classes = { normal = '50%', background = '50%' }
";

fn monitoring(words: &str) -> Request<Body> {
    let mut request = get("/", words);
    request.extensions_mut().insert(Facts::new().user("monitoring"));
    request
}

#[tokio::test]
async fn they_pass_whatever_is_full() {
    for request in [|| get("/hook", "hold"), || monitoring("hold")] {
        let scene = Scene::new(RULES);
        let normal = scene.hold("/").await;
        let waiting = scene.hold("/").await;
        assert_eq!(scene.inside(), (1, 1));
        let mut all = Vec::new();
        for _ in 0..5 {
            all.push(scene.begin(request()).await);
        }
        assert_eq!((scene.inside(), scene.called()), ((6, 1), 6), "others still wait");
        scene.get("/").await.assert_shed();
        scene.go(6).await;
        for answering in all {
            let answer = Answer::of(answering).await;
            assert_eq!((answer.status, answer.get("ratelimit")), (200, None));
        }
        assert_eq!(Answer::of(normal).await.status, 200);
        assert_eq!((scene.inside(), scene.called()), ((1, 0), 7), "then there is room");
        scene.go(1).await;
        assert_eq!(Answer::of(waiting).await.status, 200);
        assert_eq!(scene.inside(), (0, 0));
    }
}

/// Who waits, waits for them, too.
#[tokio::test]
async fn others_wait_for_them() {
    let scene = Scene::new(RULES);
    let hooks = [scene.hold("/hook").await, scene.hold("/hook").await];
    let waiting = scene.hold("/").await;
    assert_eq!((scene.inside(), scene.called()), ((2, 1), 2));
    let [one, other] = hooks;
    one.abort();
    super::settle().await;
    assert_eq!(scene.inside(), (1, 1), "half of two is one");
    other.abort();
    super::settle().await;
    assert_eq!((scene.inside(), scene.called()), ((1, 0), 3));
    scene.go(1).await;
    assert_eq!(Answer::of(waiting).await.status, 200);
}

#[tokio::test]
async fn they_use_up_no_limit_and_are_counted() {
    let scene = Scene::new(RULES);
    let before = scene.all_left("/").await;
    assert_eq!(scene.statuses("/hook", 5).await, [200; 5]);
    assert_eq!(scene.all_left("/").await, before);
    assert_eq!(scene.priority("hook"), (5, 0));
    assert_eq!(scene.send(monitoring("")).await.status, 200);
    assert_eq!(scene.priority("hook"), (5, 0));
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn a_lower_limit_is_not_theirs() {
    let scene = Scene::new(&RULES.replace("100/h", "2/h"));
    scene.suffer(50);
    assert_eq!(scene.get("/").await.status, 200);
    assert_eq!(scene.get("/").await.status, 503);
    assert_eq!(scene.statuses("/hook", 3).await, [200; 3]);
    assert_eq!(scene.send(monitoring("")).await.status, 200);
}

/// Their failures make a capacity no smaller than others', and leave no place behind.
#[tokio::test]
async fn their_places_are_free_however_they_end() {
    let scene = Scene::new(RULES);
    for words in ["status=500", "status=204", "used=3"] {
        scene.send(get("/hook", words)).await;
        assert_eq!(scene.inside(), (0, 0), "{words}");
    }
    for words in ["fail", "panic"] {
        let _ = scene.begin(get("/hook", words)).await.await;
        assert_eq!(scene.inside(), (0, 0), "{words}");
    }
    drop(scene.open(get("/hook", "stream")).await);
    assert_eq!(scene.inside(), (0, 0));
}
