//! A queue and a door: first the one, then the other. Time passes when nothing else happens.

use std::time::Duration;

use super::{Answer, SECOND, Scene, get, settle};

const RULES: &str = "
[[rule]]
name = 'queue'
match.path = '/queue'
limits = '1/s'
algorithm = 'leaky-bucket'
queue = 5
[[rule]]
name = 'worker'
capacity = { limit = 2, places = 0 }
";

async fn pass(seconds: u32) {
    tokio::time::sleep(SECOND * seconds).await;
    settle().await;
}

/// Nobody takes up room that waits for its turn in a queue.
#[tokio::test(start_paused = true)]
async fn who_waits_in_a_queue_is_not_in() {
    let scene = Scene::new(RULES);
    let first = scene.hold("/queue").await;
    let second = scene.hold("/queue").await;
    let third = scene.hold("/queue").await;
    assert_eq!((scene.called(), scene.inside()), (1, (1, 0)));
    pass(1).await;
    assert_eq!((scene.called(), scene.inside()), (2, (2, 0)));
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    pass(1).await;
    assert_eq!((scene.called(), scene.inside()), (3, (2, 0)));
    scene.go(2).await;
    for answering in [second, third] {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!(scene.inside(), (0, 0));
}

/// It had its turn, and then there was no room: its place in the queue is given back.
#[tokio::test(start_paused = true)]
async fn who_is_turned_away_after_the_queue_gives_its_place_back() {
    let permits = "[[rule]]\nname = 'permits'\nlimits = '9 concurrent'\n";
    let scene = Scene::new(&format!("{permits}{}", RULES.replace("limit = 2", "limit = 1")));
    assert_eq!(scene.get("/queue").await.status, 200);
    let before = scene.all_left("/queue").await;
    let unlucky = scene.begin(get("/queue", "")).await;
    assert_eq!(scene.all_left("/queue").await, [before[0] - 1, before[1] - 1]);
    // There was room when it came.
    let other = scene.hold("/").await;
    assert_eq!((scene.called(), scene.inside()), (2, (1, 0)));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    Answer::of(unlucky).await.assert_shed();
    assert_eq!(scene.called(), 2);
    scene.go(1).await;
    assert_eq!(Answer::of(other).await.status, 200);
    assert_eq!(scene.all_left("/queue").await, before);
}

/// And what has passed of it since it joined is not given back: it is gone.
#[tokio::test(start_paused = true)]
async fn a_place_in_a_queue_passes_with_time() {
    let scene = Scene::new(&RULES.replace("limit = 2", "limit = 1"));
    assert_eq!(scene.get("/queue").await.status, 200);
    let unlucky = scene.begin(get("/queue", "")).await;
    let other = scene.hold("/").await;
    scene.clock.advance(Duration::from_millis(1500));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    Answer::of(unlucky).await.assert_shed();
    assert_eq!(scene.left("/queue").await, 5, "half of it is yet to pass");
    scene.advance(SECOND / 2).await;
    assert_eq!(scene.left("/queue").await, 6);
    drop(other);
}

/// Who leaves the queue gives back the place it had, and not another's.
#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_gives_back_one_place() {
    let scene = Scene::new(RULES);
    let _first = scene.hold("/queue").await;
    let before = scene.left("/queue").await;
    for _ in 0..3 {
        let leaves = scene.hold("/queue").await;
        assert_eq!(scene.left("/queue").await, before - 1);
        leaves.abort();
        settle().await;
        assert_eq!(scene.left("/queue").await, before);
    }
    pass(5).await;
    assert_eq!((scene.called(), scene.inside()), (1, (1, 0)));
    assert_eq!(scene.tally("worker").1, 0);
}

/// It had its turn, and waits at the door now: what it took is given back once, or not at all.
#[tokio::test(start_paused = true)]
async fn who_leaves_the_line_after_the_queue_gives_back_no_more_than_it_had() {
    let scene = Scene::new(&RULES.replace("limit = 2, places = 0", "limit = 1, places = 5"));
    assert_eq!(scene.statuses("/queue", 1).await, [200]);
    let _first = scene.hold("/").await;
    for _ in 0..2 {
        let before = scene.left("/queue").await;
        let leaves = scene.hold("/queue").await;
        pass(5).await;
        assert_eq!(scene.inside(), (1, 1));
        leaves.abort();
        settle().await;
        assert_eq!(scene.inside(), (1, 0));
        assert!(scene.left("/queue").await <= before);
    }
}

/// Who was served has used its turn, however it ends.
#[tokio::test(start_paused = true)]
async fn who_was_served_gives_nothing_back() {
    let scene = Scene::new(&RULES.replace("limit = 2", "limit = 9"));
    let before = scene.left("/queue").await;
    for (n, words) in ["hold", "status=500", "fail", "panic"].into_iter().enumerate() {
        let answering = scene.begin(get("/queue", words)).await;
        pass(5).await;
        assert_eq!(scene.called(), n as u64 + 1);
        answering.abort();
        let _ = answering.await;
        settle().await;
        assert_eq!(scene.left("/queue").await, before - n as u64 - 1, "{words}");
    }
}

/// Full queues deny as ever: that is the caller's limit.
#[tokio::test(start_paused = true)]
async fn a_full_queue_says_429() {
    let scene = Scene::new(&RULES.replace("limit = 2", "limit = 20"));
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(scene.begin(get("/queue", "")).await);
    }
    assert_eq!(scene.get("/queue").await.status, 429);
    assert_eq!(scene.tally("worker").1, 0);
    for answering in all {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!(scene.inside(), (0, 0));
}
