//! Classes that share what is in flight: the last of it is left to what is important.

use axum::body::Body;
use http::Request;

use super::{Answer, Scene};

const RULES: &str = "
[[priority]]
name = 'heavy'
match.path = '/heavy'
weight = 10
[[rule]]
name = 'fleet'
limits = '5 concurrent'
classes = { normal = '80%', background = '40%' }
";

#[tokio::test]
async fn each_class_fills_its_part() {
    let scene = Scene::classed(RULES);
    let mut all = Vec::new();
    for (path, expected) in [("/reports", 2), ("/", 2), ("/pay", 1)] {
        for _ in 0..expected {
            all.push(scene.hold(path).await);
        }
        assert_eq!(scene.get(path).await.status, 503, "{path}");
    }
    assert_eq!(scene.called(), 5);
    for path in ["/reports", "/", "/heavy", "/pay"] {
        assert_eq!(scene.get(path).await.status, 503, "{path}");
    }
    scene.go(1).await;
    assert_eq!(scene.get("/reports").await.status, 503);
    assert_eq!(scene.get("/").await.status, 503);
    assert_eq!(scene.get("/pay").await.status, 200);
    scene.go(1).await;
    assert_eq!(scene.get("/").await.status, 200);
    scene.go(2).await;
    assert_eq!(scene.get("/reports").await.status, 200);
    scene.go(1).await;
    for answering in all {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!(scene.left("/pay").await, 5);
}

/// Whatever class: what is critical hears it, too, when all is full.
#[tokio::test]
async fn who_is_denied_by_it_hears_of_reduced_capacity() {
    let scene = Scene::classed(RULES);
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(scene.hold("/pay").await);
    }
    for (path, policy) in [("/reports", 2), ("/", 4), ("/heavy", 4), ("/pay", 5)] {
        let denied = scene.get(path).await;
        denied.assert_shed();
        let policy = format!("\"fleet\";q={policy};qu=\"concurrent-requests\"");
        assert_eq!(denied.get("ratelimit-policy"), Some(policy.as_str()), "{path}");
    }
    assert_eq!(scene.tally("fleet"), (5, 4, 0));
    assert_eq!((scene.priority("pay"), scene.priority("heavy")), ((5, 1), (0, 1)));
}

#[tokio::test]
async fn a_rule_may_answer_otherwise_and_grpc_hears_it_in_its_own_way() {
    let scene = Scene::classed(&format!("{RULES}on_deny = {{ status = 529 }}\n"));
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(scene.hold("/pay").await);
    }
    assert_eq!(scene.get("/").await.status, 529);
    let request = Request::post("/").header("content-type", "application/grpc");
    let denied = scene.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((denied.status, denied.get("grpc-status")), (200, Some("14")));
}

#[tokio::test]
async fn who_is_denied_by_it_has_used_nothing_else() {
    let rate = "[[rule]]\nname = 'rate'\nlimits = '9/h'\nalgorithm = 'fixed-window'\n";
    let scene = Scene::classed(&format!("{rate}{RULES}"));
    let _all = [scene.hold("/reports").await, scene.hold("/reports").await];
    for _ in 0..5 {
        assert_eq!(scene.get("/reports").await.status, 503);
    }
    assert_eq!(scene.all_left("/reports").await, [7, 0]);
}

#[tokio::test]
async fn permits_come_back_from_those_who_hang_up() {
    let scene = Scene::classed(RULES);
    for _ in 0..5 {
        let all = [scene.hold("/reports").await, scene.hold("/reports").await];
        assert_eq!(scene.left("/reports").await, 0);
        all.iter().for_each(|answering| answering.abort());
        super::settle().await;
        assert_eq!(scene.left("/reports").await, 2);
    }
}

#[tokio::test]
async fn a_shadow_only_counts() {
    let scene = Scene::classed(&format!("{RULES}shadow = true\n"));
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(scene.hold("/reports").await);
    }
    assert_eq!(scene.called(), 5);
    assert_eq!(scene.tally("fleet"), (2, 0, 3));
}

/// A limit of the caller's and one of the service's: each says what it is.
#[tokio::test]
async fn plain_permits_say_429_as_ever() {
    let plain = "[[rule]]\nname = 'at-once'\nlimits = '1 concurrent'\n";
    let scene = Scene::classed(&format!("{plain}{RULES}"));
    let _first = scene.hold("/").await;
    let denied = scene.get("/").await;
    assert_eq!((denied.status, denied.get("retry-after")), (429, None));
}

/// There are never as many for its class: no wait would do.
#[tokio::test]
async fn no_wait_is_told_for_more_than_a_class_may_fill() {
    for (cost, wait) in [(5, None), (3, Some("1"))] {
        let scene = Scene::classed(&format!(
            "[[rule]]\nname = 'few'\nlimits = '6 concurrent'\ncost = {cost}\n\
             classes = {{ normal = '50%', background = '50%' }}\n"
        ));
        let _held = scene.hold("/").await;
        let denied = scene.get("/").await;
        assert_eq!((denied.status, denied.get("retry-after")), (503, wait), "a cost of {cost}");
    }
}
