//! Lower limits: what callers are told of them, and what those hear who are denied by one.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::json;

use super::{Answer, SECOND, Scene, get};

fn adaptive(rest: &str) -> String {
    format!("[[rule]]\nname = 'api'\nadaptive = {{ cpu = 'off' }}\n{rest}\n")
}

const TEN: &str = "limits = '10/min'";

#[tokio::test]
async fn the_lower_limit_is_told_in_every_style() {
    for (style, whole, lower) in [
        (
            "ietf",
            [("ratelimit-policy", "\"api\";q=10;w=60")],
            [("ratelimit-policy", "\"api\";q=5;w=60")],
        ),
        ("draft-07", [("ratelimit-policy", "10;w=60")], [("ratelimit-policy", "5;w=60")]),
        ("draft-06", [("ratelimit-limit", "10")], [("ratelimit-limit", "5")]),
        ("x-ratelimit", [("x-ratelimit-limit", "10")], [("x-ratelimit-limit", "5")]),
    ] {
        let text = format!("[headers]\nstyles = '{style}'\n{}", adaptive(TEN));
        let scene = Scene::new(&text);
        let told = scene.get("/").await;
        for (name, value) in whole {
            assert_eq!(told.get(name), Some(value), "{style}");
        }
        scene.suffer(50);
        let told = scene.get("/").await;
        for (name, value) in lower {
            assert_eq!(told.get(name), Some(value), "{style}");
        }
        scene.recover();
        let told = scene.get("/").await;
        for (name, value) in whole {
            assert_eq!(told.get(name), Some(value), "{style}: it is whole again");
        }
    }
}

/// A bucket's depth in time stays the same, and so does the window that is told.
#[tokio::test]
async fn the_window_that_is_told_stays_the_same() {
    for (limit, window) in [("100/s", 1), ("60/min", 60), ("200/h", 3600), ("10/s burst 50", 5)] {
        for percent in [90, 81, 72, 65, 59, 53, 50] {
            let scene = Scene::new(&adaptive(&format!("limits = '{limit}'")));
            scene.suffer(percent);
            let told = scene.get("/").await;
            let policy = told.get("ratelimit-policy").unwrap();
            assert!(policy.ends_with(&format!(";w={window}")), "{limit} at {percent} %: {policy}");
        }
    }
}

#[tokio::test]
async fn who_is_denied_by_it_hears_of_reduced_capacity() {
    let scene = Scene::new(&adaptive(TEN));
    scene.suffer(50);
    assert_eq!(scene.statuses("/", 5).await, [200; 5]);
    let denied = scene.get("/").await;
    denied.assert_shed();
    assert_eq!(denied.get("retry-after"), Some("12"));
    assert_eq!(denied.get("ratelimit-policy"), Some("\"api\";q=5;w=60"));
    assert!(denied.get("ratelimit").unwrap().starts_with("\"api\";r=0;"), "{denied:?}");
    assert_eq!(denied.get("cache-control"), Some("no-store"));
    let body = denied.json();
    assert_eq!((&body["status"], &body["retry_after"]), (&json!(503), &json!(12)));
    assert_eq!(body["violated-policies"], json!(["api"]));
    // It is enough to wait for so long, and a second less is not.
    scene.advance(SECOND * 11).await;
    assert_eq!(scene.get("/").await.status, 503);
    scene.advance(SECOND).await;
    assert_eq!(scene.get("/").await.status, 200);
}

#[tokio::test]
async fn a_whole_limit_says_429_as_ever() {
    let scene = Scene::new(&adaptive("limits = '2/h'\nalgorithm = 'fixed-window'"));
    assert_eq!(scene.statuses("/", 3).await, [200, 200, 429]);
    scene.suffer(50);
    assert_eq!(scene.get("/").await.status, 503);
    scene.recover();
    let denied = scene.get("/").await;
    assert_eq!(denied.status, 429);
    assert!(denied.json()["type"].as_str().unwrap().ends_with("#quota-exceeded"));
}

#[tokio::test]
async fn a_rule_may_answer_otherwise() {
    let text = adaptive("limits = '2/h'\non_deny = { status = 418, body = 'tea' }");
    let scene = Scene::new(&text);
    scene.suffer(50);
    assert_eq!(scene.get("/").await.status, 200);
    let denied = scene.get("/").await;
    assert_eq!((denied.status, &denied.body[..]), (418, &b"tea"[..]));
    assert!(denied.get("retry-after").is_some());
}

/// A cost that would pass under the whole limit waits for health, and no time is long enough.
#[tokio::test]
async fn a_cost_above_the_lower_limit_passes_when_all_is_well() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let scene = Scene::new(&adaptive(&format!("{TEN}\ncost = 6\nalgorithm = '{algorithm}'")));
        scene.suffer(50);
        for _ in 0..3 {
            assert_eq!(scene.get("/").await.status, 503, "{algorithm}");
            scene.advance(SECOND * 60).await;
        }
        scene.recover();
        assert_eq!(scene.get("/").await.status, 200, "{algorithm}");
    }
}

#[tokio::test]
async fn waits_are_told_by_the_factor_as_it_is_now() {
    let scene = Scene::new(&adaptive(TEN));
    scene.suffer(50);
    scene.statuses("/", 5).await;
    assert_eq!(scene.get("/").await.get("retry-after"), Some("12"));
    scene.recover();
    while scene.get("/").await.status == 200 {}
    let wait: u64 = scene.get("/").await.get("retry-after").unwrap().parse().unwrap();
    assert!(wait <= 6, "{wait}");
}

/// Who is over a limit that is whole, too, would be denied in health as well.
#[tokio::test]
async fn who_is_over_a_whole_limit_too_hears_429() {
    let api = adaptive(TEN);
    for limit in ["5/day", "5/min", "5/s"] {
        let other = format!("[[rule]]\nname = 'other'\nlimits = '{limit}'\n");
        for text in [format!("{api}{other}"), format!("{other}{api}")] {
            let scene = Scene::new(&text);
            scene.suffer(50);
            assert_eq!(scene.statuses("/", 5).await, [200; 5]);
            assert_eq!(scene.get("/").await.status, 429, "{text}");
        }
    }
}

#[tokio::test]
async fn who_is_over_the_lower_limit_of_two_hears_503() {
    let api = adaptive(TEN);
    let other = "[[rule]]\nname = 'other'\nlimits = ['6/h', '50 concurrent']\n";
    for text in [format!("{api}{other}"), format!("{other}{api}")] {
        let scene = Scene::new(&text);
        scene.suffer(50);
        assert_eq!(scene.statuses("/", 5).await, [200; 5]);
        let denied = scene.get("/").await;
        denied.assert_shed();
        assert_eq!(denied.json()["violated-policies"], json!(["api"]));
    }
}

#[tokio::test]
async fn permits_are_lower_and_come_back() {
    let scene = Scene::new(&adaptive("limits = '4 concurrent'"));
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(scene.hold("/").await);
    }
    scene.suffer(50);
    let denied = scene.get("/").await;
    assert_eq!(denied.status, 503);
    assert!(denied.json()["type"].as_str().unwrap().ends_with("#temporary-reduced-capacity"));
    // Three are in where two may be: one leaves, and there is still no room.
    scene.go(1).await;
    Answer::of(all.remove(0)).await;
    assert_eq!(scene.get("/").await.status, 503);
    scene.go(1).await;
    Answer::of(all.remove(0)).await;
    assert_eq!(scene.get("/").await.status, 200);
    scene.recover();
    assert_eq!(scene.left("/").await, 3);
}

#[tokio::test]
async fn grpc_clients_hear_that_it_is_unavailable() {
    let scene = Scene::new(&adaptive(TEN));
    scene.suffer(50);
    scene.statuses("/", 5).await;
    let request = Request::post("/").header("content-type", "application/grpc");
    let denied = scene.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((denied.status, denied.get("grpc-status")), (200, Some("14")));
    assert_eq!(denied.get("grpc-retry-pushback-ms"), Some("12000"));
}

/// What was reserved is settled by what it was: nothing is handed out by a factor that changes in between.
#[tokio::test]
async fn what_is_settled_after_a_change_hands_nothing_out() {
    let rest = "limits = '100/day'\ncost = 10\nsettle = 'header:x-used'";
    // Reserved whole, settled at half.
    let scene = Scene::new(&adaptive(rest));
    scene.send(get("/", "used=50")).await;
    let held = scene.begin(get("/", "hold used=0")).await;
    assert_eq!(scene.left("/").await, 40);
    scene.suffer(50);
    scene.go(1).await;
    Answer::of(held).await;
    scene.recover();
    assert_eq!(scene.left("/").await, 50);
    // Reserved at half, where ten are twenty of the whole, and settled whole.
    scene.suffer(50);
    let held = scene.begin(get("/", "hold used=0")).await;
    scene.recover();
    assert_eq!(scene.left("/").await, 30);
    scene.go(1).await;
    Answer::of(held).await;
    assert_eq!(scene.left("/").await, 50);
}

#[tokio::test]
async fn what_does_not_count_is_given_back_after_a_change() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let rest = format!("limits = '10/day'\ncharge_on = [401]\nalgorithm = '{algorithm}'");
        let scene = Scene::new(&adaptive(&rest));
        scene.send(get("/", "status=401")).await;
        let held = scene.begin(get("/", "hold status=200")).await;
        scene.suffer(50);
        let late = scene.begin(get("/", "hold status=200")).await;
        scene.recover();
        scene.go(2).await;
        Answer::of(held).await;
        Answer::of(late).await;
        assert_eq!(scene.left("/").await, 9, "{algorithm}");
    }
}

/// A queue lets one leave at a time, more slowly while the service suffers.
#[tokio::test(start_paused = true)]
async fn a_queue_is_slower() {
    let rest = "limits = '1/s'\nalgorithm = 'leaky-bucket'\nqueue = 9";
    let scene = Scene::new(&adaptive(rest));
    scene.suffer(50);
    let start = tokio::time::Instant::now();
    let (first, second) = (scene.begin(get("/", "")).await, scene.begin(get("/", "")).await);
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(second).await.status, 200);
    assert_eq!(start.elapsed().as_millis() / 100, Duration::from_secs(2).as_millis() / 100);
}

#[tokio::test]
async fn a_shadow_denies_nobody_by_a_lower_limit() {
    let scene = Scene::new(&adaptive("limits = '4/h'\nshadow = true"));
    scene.suffer(50);
    assert_eq!(scene.statuses("/", 4).await, [200; 4]);
    assert_eq!(scene.tally("api"), (2, 0, 2));
}
