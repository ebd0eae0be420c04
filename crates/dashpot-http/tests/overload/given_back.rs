//! Who is turned away at the door gets back what it took, and nobody gets more than that.

use super::{Answer, SECOND, Scene, get, settle};

const DOOR: &str = "
[[priority]]
name = 'pay'
match.path = '/pay'
class = 'critical'
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 1, wait = '10s' }
";

fn scene(rest: &str) -> Scene {
    Scene::new(&format!("[[rule]]\nname = 'api'\n{rest}\n{DOOR}"))
}

const EACH: [&str; 12] = [
    "limits = '10/h'",
    "limits = '10/h burst 10'\ncost = 3",
    "limits = '10/h'\nalgorithm = 'leaky-bucket'",
    "limits = '10/h'\nalgorithm = 'fixed-window'",
    "limits = '10/h'\nalgorithm = 'sliding-log'",
    "limits = '10/h'\nalgorithm = 'sliding-log'\ncost = 2",
    "limits = '10/h'\nalgorithm = 'sliding-window'",
    "limits = '10 concurrent'",
    "limits = ['10/h', '100/day']",
    "limits = '10/h'\ncost = 2\nsettle = 'header:x-used'",
    "limits = '10/h'\nsettle = 'bytes'\ncost = 2",
    "limits = '10/h'\nalgorithm = 'fixed-window'\ncharge_on = [401]",
];

async fn assert_left(scene: &Scene, expected: &[u64], why: &str) {
    assert_eq!(scene.all_left("/").await, expected, "{why}");
}

#[tokio::test]
async fn whoever_finds_no_place_has_used_nothing() {
    for rest in EACH {
        let scene = scene(rest);
        let _first = scene.hold("/").await;
        let _second = scene.hold("/").await;
        let before = scene.all_left("/").await;
        for _ in 0..30 {
            scene.get("/").await.assert_shed();
        }
        assert_left(&scene, &before, rest).await;
    }
}

#[tokio::test]
async fn whoever_waited_in_vain_has_used_nothing() {
    for rest in EACH {
        let scene = scene(rest);
        let _first = scene.hold("/").await;
        let before = scene.all_left("/").await;
        for _ in 0..5 {
            let late = scene.hold("/").await;
            assert_ne!(scene.all_left("/").await, before, "{rest}: it has taken something");
            scene.advance(SECOND * 10).await;
            Answer::of(late).await.assert_shed();
        }
        let after = scene.all_left("/").await;
        assert!(
            after.iter().zip(&before).all(|(after, before)| after == before),
            "{rest}: {after:?}"
        );
    }
}

#[tokio::test]
async fn whoever_had_to_make_room_has_used_nothing() {
    for rest in EACH {
        // The one who takes the place is held to no limit.
        let scene = scene(&format!("match.path = '/'\n{rest}"));
        let _first = scene.hold("/").await;
        let before = scene.all_left("/").await;
        let pushed_out = scene.hold("/").await;
        assert_ne!(scene.all_left("/").await, before, "{rest}: it has taken something");
        let _critical = scene.hold("/pay").await;
        Answer::of(pushed_out).await.assert_shed();
        assert_left(&scene, &before, rest).await;
    }
}

/// Permits and what was charged, in one rule.
#[tokio::test]
async fn a_rule_with_rates_and_permits_gets_back_both() {
    let scene = scene("limits = ['10/h', '100/day', '20 concurrent']");
    let _first = scene.hold("/").await;
    for _ in 0..3 {
        let late = scene.hold("/").await;
        scene.advance(SECOND * 10).await;
        Answer::of(late).await.assert_shed();
    }
    assert_left(&scene, &[9, 99, 19], "one is served").await;
}

#[tokio::test]
async fn whoever_is_served_has_used_what_it_used() {
    let scene = scene("limits = '10/h'\nalgorithm = 'fixed-window'");
    let first = scene.hold("/").await;
    let second = scene.hold("/").await;
    scene.get("/").await.assert_shed();
    scene.go(2).await;
    assert_eq!(Answer::of(first).await.status, 200);
    let told = Answer::of(second).await;
    assert_eq!((told.status, told.get("ratelimit").unwrap().contains("r=8")), (200, true));
    assert_left(&scene, &[8], "two were served").await;
}

/// What only counts is given back as well.
#[tokio::test]
async fn shadows_get_back_what_they_counted() {
    let scene = scene("limits = '10/h'\nalgorithm = 'fixed-window'\nshadow = true");
    let _first = scene.hold("/").await;
    let _second = scene.hold("/").await;
    for _ in 0..5 {
        scene.get("/").await.assert_shed();
    }
    assert_left(&scene, &[8], "two are in").await;
}

/// So do those that were charged because there was a place to wait in, and waited in vain.
#[tokio::test]
async fn shadows_of_who_waited_in_vain_get_back_what_they_counted() {
    for who in ["shadow = true", "enforce_percent = 0"] {
        let scene = Scene::new(&format!(
            "[[rule]]\nname = 'day'\nlimits = '10/h'\nalgorithm = 'fixed-window'\n{who}\n\
             [[rule]]\nname = 'door'\ncapacity = {{ limit = 1, places = 1, wait = '1s' }}\n"
        ));
        let _inside = scene.hold("/").await;
        let waiting = scene.hold("/").await;
        assert_left(&scene, &[8], "it counts while it waits").await;
        scene.advance(SECOND).await;
        Answer::of(waiting).await.assert_shed();
        assert_left(&scene, &[9], "one is in").await;
    }
}

#[tokio::test]
async fn every_rule_gets_back_what_is_its_own() {
    let scene = Scene::new(&format!(
        "[[rule]]\nname = 'a'\nlimits = '10/h'\n[[rule]]\nname = 'b'\ncost = 2\n\
         limits = '20/h'\nalgorithm = 'sliding-log'\n\
         [[rule]]\nname = 'c'\nlimits = '7 concurrent'\n{DOOR}"
    ));
    let _first = scene.hold("/").await;
    let _second = scene.hold("/").await;
    for _ in 0..5 {
        scene.get("/").await.assert_shed();
    }
    assert_left(&scene, &[8, 16, 5], "two are in").await;
}

/// A window that has ended meanwhile gets nothing back into the next one.
#[tokio::test]
async fn what_was_taken_of_a_window_is_not_given_back_into_the_next() {
    let scene = scene("limits = '10/min'\nalgorithm = 'fixed-window'");
    // 5 s before the end of a window.
    let into = crate::common::START % 60;
    scene.advance(SECOND * u32::try_from(55 + 60 - into).unwrap()).await;
    let first = scene.hold("/").await;
    let late = scene.hold("/").await;
    assert_left(&scene, &[8], "both took one").await;
    scene.advance(SECOND * 7).await;
    assert_left(&scene, &[10], "that is another window").await;
    scene.get("/").await.assert_shed();
    scene.go(0).await;
    scene.advance(SECOND * 3).await;
    Answer::of(late).await.assert_shed();
    assert_left(&scene, &[10], "there are no more than ten").await;
    scene.go(1).await;
    Answer::of(first).await;
    assert_eq!(scene.statuses("/", 11).await[9..], [200, 429]);
}

/// Others used the new window meanwhile: what they used stays used.
#[tokio::test]
async fn what_others_used_of_the_next_window_stays_used() {
    let text = format!(
        "[[rule]]\nname = 'api'\nlimits = '10/min'\nalgorithm = 'fixed-window'\n{}",
        DOOR.replace("[[rule]]", "[[rule]]\nmatch.path = ['/busy', '/pay']")
    );
    let scene = Scene::new(&text);
    let into = crate::common::START % 60;
    scene.advance(SECOND * u32::try_from(55 + 60 - into).unwrap()).await;
    let _first = scene.hold("/busy").await;
    let late = scene.hold("/busy").await;
    scene.advance(SECOND * 7).await;
    assert_eq!(scene.statuses("/free", 4).await, [200; 4]);
    scene.advance(SECOND * 3).await;
    Answer::of(late).await.assert_shed();
    assert_left(&scene, &[6], "four of the new window are used").await;
}

/// Nor does a bucket get back what came back to it while they waited: others have used that.
#[tokio::test]
async fn what_came_back_to_a_bucket_meanwhile_is_not_given_back_again() {
    let scene = Scene::new(
        "[[rule]]\nname = 'api'\nlimits = '1/s burst 6'\n[[rule]]\nname = 'worker'\n\
         match.path = '/busy'\ncapacity = { limit = 1, places = 5, wait = '4s' }",
    );
    let _first = scene.hold("/busy").await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(scene.hold("/busy").await);
    }
    assert_left(&scene, &[0], "each has taken one").await;
    scene.advance(SECOND * 39 / 10).await;
    assert_eq!(scene.statuses("/free", 4).await, [200, 200, 200, 429]);
    scene.advance(SECOND / 10).await;
    for late in waiting {
        Answer::of(late).await.assert_shed();
    }
    assert_eq!(
        scene.statuses("/free", 2).await,
        [200, 429],
        "what came back while they waited is used"
    );
}

/// What comes back to it while they wait is taken off for each of them: nobody knows whose it was.
#[tokio::test]
async fn several_who_waited_together_get_back_less_what_came_back_meanwhile() {
    let scene = Scene::new(
        "[[rule]]\nname = 'api'\nlimits = '1/s burst 60'\ncost = 10\n[[rule]]\nname = 'worker'\n\
         capacity = { limit = 1, places = 5, wait = '4s' }",
    );
    let _first = scene.hold("/").await;
    let waiting = [scene.hold("/").await, scene.hold("/").await];
    assert_left(&scene, &[30], "each has taken ten").await;
    scene.advance(SECOND * 4).await;
    for late in waiting {
        Answer::of(late).await.assert_shed();
    }
    // Four have come back by themselves, and six of each.
    assert_left(&scene, &[46], "without them it would be 54").await;
}

/// `charge_on` and `settle` are settled once: given back at the door, or after the answer.
#[tokio::test]
async fn what_is_settled_is_settled_once() {
    let scene = scene(
        "limits = '100/day'\nalgorithm = 'fixed-window'\ncost = 10\nsettle = 'header:x-used'",
    );
    let first = scene.begin(get("/", "hold used=25")).await;
    let late = scene.begin(get("/", "hold used=25")).await;
    assert_left(&scene, &[80], "ten each are reserved").await;
    scene.advance(SECOND * 10).await;
    Answer::of(late).await.assert_shed();
    assert_left(&scene, &[90], "those of who was turned away are back").await;
    scene.go(1).await;
    Answer::of(first).await;
    assert_left(&scene, &[75], "the other has used 25").await;
}

/// Who hangs up in line gets back what it took, or does not; never more.
#[tokio::test]
async fn who_hangs_up_in_line_gets_back_no_more_than_it_took() {
    for rest in EACH {
        let scene = scene(rest);
        let _first = scene.hold("/").await;
        let mut before = scene.all_left("/").await;
        for _ in 0..2 {
            let leaves = scene.hold("/").await;
            assert_eq!(scene.inside(), (1, 1), "{rest}");
            leaves.abort();
            settle().await;
            let after = scene.all_left("/").await;
            assert!(after.iter().zip(&before).all(|(after, before)| after <= before), "{rest}");
            before = after;
        }
    }
}

/// Who was served, has used it: it makes no difference that there is a door.
#[tokio::test]
async fn who_was_served_gives_back_as_much_as_without_a_door() {
    for rest in EACH {
        for words in ["hold", "", "status=401", "status=500", "used=1", "fail", "panic"] {
            let mut left = Vec::new();
            for scene in [scene(rest), Scene::new(&format!("[[rule]]\nname = 'api'\n{rest}\n"))] {
                let answering = scene.begin(get("/", words)).await;
                answering.abort();
                let _ = answering.await;
                settle().await;
                left.push(scene.all_left("/").await);
            }
            assert_eq!(left[0], left[1], "{rest}, {words}");
        }
    }
}

/// A permit that was lent to who waits at the door is free for others when it goes.
#[tokio::test]
async fn permits_come_back_however_one_leaves_the_line() {
    let scene = scene("limits = '3 concurrent'");
    let _first = scene.hold("/").await;
    for _ in 0..3 {
        let waiting = scene.hold("/").await;
        assert_left(&scene, &[1], "two permits are out").await;
        waiting.abort();
        settle().await;
        assert_left(&scene, &[2], "one hung up").await;
        let waiting = scene.hold("/").await;
        scene.advance(SECOND * 10).await;
        Answer::of(waiting).await.assert_shed();
        assert_left(&scene, &[2], "one was too late").await;
        scene.hold("/").await.abort();
        settle().await;
    }
    assert_left(&scene, &[2], "one is served").await;
}

/// What was taken has left its window by then: what others took since stays taken.
#[tokio::test]
async fn what_has_come_back_by_itself_is_not_given_back_again() {
    for algorithm in ["fixed-window", "sliding-log", "sliding-window"] {
        let text = format!(
            "[[rule]]\nname = 'api'\nlimits = '10/min'\nalgorithm = '{algorithm}'\n{}",
            DOOR.replace("[[rule]]", "[[rule]]\nmatch.path = '/busy'").replace("'10s'", "'10min'")
        );
        let scene = Scene::new(&text);
        let _first = scene.hold("/busy").await;
        let late = scene.hold("/busy").await;
        scene.advance(SECOND * 599).await;
        assert_eq!(scene.statuses("/free", 11).await[9..], [200, 429], "{algorithm}");
        scene.advance(SECOND).await;
        Answer::of(late).await.assert_shed();
        assert_eq!(scene.get("/free").await.status, 429, "{algorithm}: ten at one instant are all");
    }
}
