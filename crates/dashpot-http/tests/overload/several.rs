//! Several capacities: a request has to find room in each, and holds no place that it does not use.

use super::{Answer, SECOND, Scene, get, settle};

const RULES: &str = "
[[priority]]
name = 'pay'
match.path = '/pay'
class = 'critical'
[[rule]]
name = 'rate'
limits = '100/h'
algorithm = 'fixed-window'
[[rule]]
name = 'all'
capacity = { limit = 3, places = 3, wait = '10s' }
[[rule]]
name = 'slow'
match.path = ['/slow', '/pay']
capacity = { limit = 1, places = 1, wait = '30s' }
";

fn inside(scene: &Scene) -> [(u64, u64); 2] {
    ["all", "slow"].map(|name| (scene.gate_of(name).in_flight, scene.gate_of(name).waiting))
}

#[tokio::test]
async fn each_has_room_of_its_own() {
    let scene = Scene::new(RULES);
    let slow = scene.hold("/slow").await;
    assert_eq!(inside(&scene), [(1, 0), (1, 0)]);
    let fast = scene.hold("/").await;
    assert_eq!(inside(&scene), [(2, 0), (1, 0)]);
    scene.go(2).await;
    assert_eq!(Answer::of(slow).await.status, 200);
    assert_eq!(Answer::of(fast).await.status, 200);
    assert_eq!(inside(&scene), [(0, 0), (0, 0)]);
    assert_eq!((scene.tally("all"), scene.tally("slow")), ((2, 0, 0), (1, 0, 0)));
}

#[tokio::test]
async fn who_is_turned_away_by_the_second_leaves_the_first() {
    let scene = Scene::new(RULES);
    let _first = scene.hold("/slow").await;
    let _waits = scene.hold("/slow").await;
    let before = inside(&scene);
    for _ in 0..5 {
        scene.get("/slow").await.assert_shed();
    }
    assert_eq!(inside(&scene), before);
    assert_eq!(scene.left("/").await, 98, "what they took is back");
    assert_eq!(scene.tally("slow").1, 5);
    assert_eq!(scene.tally("all").1, 0, "it was not this one's doing");
}

#[tokio::test]
async fn who_waits_for_the_second_in_vain_leaves_the_first() {
    let scene = Scene::new(RULES);
    let _first = scene.hold("/slow").await;
    let late = scene.hold("/slow").await;
    scene.advance(SECOND * 30).await;
    Answer::of(late).await.assert_shed();
    assert_eq!(inside(&scene), [(1, 0), (1, 0)]);
    assert_eq!(scene.left("/").await, 99);
    assert_eq!((scene.tally("all").1, scene.tally("slow").1), (0, 1));
}

#[tokio::test]
async fn who_has_to_make_room_at_the_second_leaves_the_first() {
    let scene = Scene::new(RULES);
    let _first = scene.hold("/slow").await;
    let pushed_out = scene.hold("/slow").await;
    let critical = scene.hold("/pay").await;
    Answer::of(pushed_out).await.assert_shed();
    let [all, slow] = inside(&scene);
    assert_eq!((all.0 <= 2, slow), (true, (1, 1)));
    scene.go(2).await;
    assert_eq!(Answer::of(critical).await.status, 200);
    assert_eq!(inside(&scene), [(0, 0), (0, 0)]);
}

#[tokio::test]
async fn who_hangs_up_leaves_both() {
    let scene = Scene::new(RULES);
    let first = scene.hold("/slow").await;
    let waits = scene.hold("/slow").await;
    waits.abort();
    settle().await;
    assert_eq!(inside(&scene), [(1, 0), (1, 0)]);
    first.abort();
    settle().await;
    assert_eq!(inside(&scene), [(0, 0), (0, 0)]);
    for words in ["fail", "panic", "status=500"] {
        let _ = scene.begin(get("/slow", words)).await.await;
        assert_eq!(inside(&scene), [(0, 0), (0, 0)], "{words}");
    }
}

/// They are entered one after another, always in the same order: nobody waits for who waits for it.
#[tokio::test]
async fn nobody_waits_for_who_waits_for_it() {
    let text = "
[[rule]]
name = 'one'
match.path = ['/a', '/both']
capacity = { limit = 1, places = 9, wait = '1min' }
[[rule]]
name = 'two'
match.path = ['/b', '/both']
capacity = { limit = 1, places = 9, wait = '1min' }
";
    let scene = Scene::new(text);
    let mut all = Vec::new();
    for path in ["/a", "/b", "/both", "/both", "/a", "/b", "/both"] {
        all.push(scene.hold(path).await);
    }
    for _ in 0..7 {
        scene.go(1).await;
    }
    for answering in all {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
    assert_eq!((scene.gate_of("one").in_flight, scene.gate_of("two").in_flight), (0, 0));
}

/// One that only counts keeps nobody from the other.
#[tokio::test]
async fn a_shadow_beside_a_real_one() {
    let text = "
[[rule]]
name = 'shadow'
capacity = { limit = 1, places = 0 }
shadow = true
[[rule]]
name = 'real'
capacity = { limit = 2, places = 0 }
";
    let scene = Scene::new(text);
    let _one = scene.hold("/").await;
    let _two = scene.hold("/").await;
    scene.get("/").await.assert_shed();
    assert_eq!((scene.gate_of("shadow").in_flight, scene.gate_of("real").in_flight), (2, 2));
    assert_eq!(scene.tally("real"), (2, 1, 0));
}

/// Who waits at the second is not slow at the first, however long that is and whatever comes of it.
#[tokio::test]
async fn waiting_at_the_second_is_not_held_against_the_first() {
    let scene = Scene::new(
        "
[[rule]]
name = 'all'
capacity = { limit = 20, latency = '250ms' }
[[rule]]
name = 'few'
match.path = '/few'
capacity = { limit = 1, places = 9, wait = '10s' }
",
    );
    let mut busy = scene.hold("/few").await;
    for _ in 0..20 {
        let mut waiting = Vec::new();
        for _ in 0..5 {
            waiting.push(scene.hold("/few").await);
        }
        for _ in 0..10 {
            scene.get("/").await;
        }
        scene.advance(SECOND).await;
        scene.get("/").await;
        scene.advance(SECOND).await;
        scene.get("/").await;
        // One hangs up; the others go in and out one by one, and the last stays.
        waiting.remove(0).abort();
        for next in waiting {
            scene.go(1).await;
            assert_eq!(Answer::of(std::mem::replace(&mut busy, next)).await.status, 200);
        }
    }
    assert!(scene.gate_of("all").limit >= 20, "{:?}", scene.gate_of("all"));
}
