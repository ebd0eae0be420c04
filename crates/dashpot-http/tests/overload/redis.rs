//! Times of stress on one Redis: instances that are not equally well, and what is given back.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{ManualClock, MemoryStore};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::{Answer, Answering, CLASSES, SECOND, Scene, get, is_done, until};
use crate::common::PATIENCE;

/// One more instance of these rules, on this Redis. Patient, so that a busy machine is not taken for a server that is down.
async fn instance(redis: &RedisServer, text: &str) -> Scene {
    let store = RedisStore::builder(redis.url()).deadline(PATIENCE).connect_timeout(PATIENCE);
    let store = store.start().unwrap();
    store.ready(PATIENCE).await.unwrap();
    let memory = Arc::new(MemoryStore::new());
    Scene::on(text, ManualClock::default(), memory, store)
}

fn adaptive(rest: &str) -> String {
    format!("[[rule]]\nname = 'api'\nadaptive = {{ cpu = 'off' }}\n{rest}\n")
}

/// What is left after one request, as it is told.
async fn left_after_one(scene: &Scene) -> u64 {
    let answer = scene.get("/").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.get("ratelimit").unwrap();
    told.split(';').find_map(|part| part.strip_prefix("r=")).unwrap().parse().unwrap()
}

/// Begins one that is held, and waits until so many are served.
async fn hold(scene: &Scene, path: &str, called: u64) -> Answering {
    let answering = scene.hold(path).await;
    until(|| scene.called() == called).await;
    answering
}

#[tokio::test]
async fn each_goes_by_its_own_factor_on_the_same_counts() {
    let redis = RedisServer::start();
    for (n, (algorithm, lower, whole)) in [
        // Of a window so many are used; of a bucket so much of its time, of which half as many units are all.
        ("fixed-window", 3, 5),
        ("sliding-log", 3, 5),
        ("sliding-window", 3, 5),
        ("token-bucket", 4, 0),
        ("leaky-bucket", 4, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let rest = format!("limits = '10/year'\nalgorithm = '{algorithm}'");
        let text = adaptive(&rest).replace("'api'", &format!("'api{n}'"));
        let (well, ill) = (instance(&redis, &text).await, instance(&redis, &text).await);
        ill.suffer(50);
        assert_eq!(well.statuses("/", 2).await, [200; 2], "{algorithm}");
        let passed = ill.statuses("/", 10).await;
        assert_eq!(passed.iter().filter(|status| **status == 200).count(), lower, "{algorithm}");
        assert!(passed[lower..].iter().all(|status| *status == 503), "{algorithm}: {passed:?}");
        let passed = well.statuses("/", 10).await;
        assert_eq!(passed.iter().filter(|status| **status == 200).count(), whole, "{algorithm}");
    }
}

#[tokio::test]
async fn permits_are_lower_where_it_is_ill() {
    let redis = RedisServer::start();
    let text = adaptive("limits = '4 concurrent'");
    let (well, ill) = (instance(&redis, &text).await, instance(&redis, &text).await);
    ill.suffer(50);
    let first = hold(&well, "/", 1).await;
    let second = hold(&ill, "/", 1).await;
    assert_eq!(ill.get("/").await.status, 503);
    let third = hold(&well, "/", 2).await;
    well.go(2).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(third).await.status, 200);
    let mut tries = 0;
    while ill.get("/").await.status != 200 {
        tries += 1;
        assert!(tries < 1000, "it is back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ill.go(1).await;
    assert_eq!(Answer::of(second).await.status, 200);
    assert!(redis.keys_without_ttl().is_empty());
}

#[tokio::test]
async fn classes_share_the_fleet() {
    let redis = RedisServer::start();
    let text = format!(
        "{CLASSES}[[rule]]\nname = 'fleet'\nlimits = '4 concurrent'\n\
         classes = {{ normal = '75%', background = '50%' }}\n"
    );
    let (one, two) = (instance(&redis, &text).await, instance(&redis, &text).await);
    let _first = hold(&one, "/reports", 1).await;
    let _second = hold(&two, "/reports", 1).await;
    assert_eq!(one.get("/reports").await.status, 503);
    let _third = hold(&one, "/", 2).await;
    assert_eq!(two.get("/").await.status, 503);
    let _fourth = hold(&two, "/pay", 2).await;
    assert_eq!(one.get("/pay").await.status, 503);
}

/// What is taken of Redis and not used at the door is there again.
#[tokio::test]
async fn who_is_turned_away_gets_back_what_it_took() {
    let redis = RedisServer::start();
    for (n, rest) in [
        "limits = '100/year'",
        "limits = '100/year'\nalgorithm = 'leaky-bucket'",
        "limits = '100/year'\nalgorithm = 'fixed-window'",
        "limits = '100/year'\nalgorithm = 'sliding-log'",
        "limits = '100/year'\nalgorithm = 'sliding-window'",
        "limits = '100 concurrent'",
        "limits = '100/year'\nsettle = 'header:x-used'",
        "limits = '100/year'\nalgorithm = 'fixed-window'\ncharge_on = [200]",
    ]
    .into_iter()
    .enumerate()
    {
        let door =
            "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 1, wait = '10s' }\n";
        let scene = instance(&redis, &format!("[[rule]]\nname = 'api{n}'\n{rest}\n{door}")).await;
        let first = hold(&scene, "/", 1).await;
        for _ in 0..3 {
            let late = scene.begin(get("/", "")).await;
            until(|| scene.gate().waiting == 1).await;
            scene.get("/").await.assert_shed();
            scene.advance(SECOND * 10).await;
            Answer::of(late).await.assert_shed();
        }
        scene.go(1).await;
        assert_eq!(Answer::of(first).await.status, 200);
        // It is given back behind the answer. One was served, and each question is.
        let mut asked = 0;
        loop {
            asked += 1;
            let left = left_after_one(&scene).await;
            let used = if rest.contains("concurrent") { 1 } else { 1 + asked };
            if left == 100 - used {
                break;
            }
            assert!(asked < 40, "{rest}: {left} are left after {asked}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Reserved while it was ill and settled when it was well: what comes back is what was taken.
#[tokio::test]
async fn what_is_settled_after_a_change_hands_nothing_out() {
    let redis = RedisServer::start();
    let text = adaptive("limits = '100/year'\ncost = 10\nsettle = 'header:x-used'");
    let scene = instance(&redis, &text).await;
    scene.suffer(50);
    let held = scene.begin(get("/", "hold used=0")).await;
    until(|| scene.called() == 1).await;
    scene.recover();
    // Ten at half are twenty of the whole, and ten are for the question.
    assert_eq!(left_after_one(&scene).await, 70);
    scene.go(1).await;
    Answer::of(held).await;
    let mut asked = 1;
    loop {
        asked += 1;
        let left = left_after_one(&scene).await;
        assert!(left <= 100 - asked * 10, "{left} are left after {asked}");
        if left == 100 - asked * 10 {
            break;
        }
        assert!(asked < 7, "{left} are left after {asked}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A door is this process's: it needs no store to hold.
#[tokio::test]
async fn a_door_holds_without_redis() {
    let redis = RedisServer::start();
    let text = "[[rule]]\nname = 'api'\nlimits = '100/h'\non_store_error = 'allow'\n\
                [[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 1, wait = '10s' }\n";
    let scene = instance(&redis, text).await;
    redis.kill();
    let first = hold(&scene, "/", 1).await;
    let second = scene.begin(get("/", "")).await;
    until(|| scene.gate().waiting == 1).await;
    scene.get("/").await.assert_shed();
    assert!(!is_done(&second).await);
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(second).await.status, 200);
    assert_eq!(scene.inside(), (0, 0));
}
