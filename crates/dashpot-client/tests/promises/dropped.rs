//! Who loses interest leaves nothing behind.

use dashpot_client::{NotSent, Pace};
use tower::{Service, ServiceExt};

use super::{HERE, Scene, well};
use crate::common::{answer, get, millis, secs};

#[test]
fn who_leaves_the_line_has_used_nothing_of_the_pace() {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace));
    let calls = scene.calls(6);
    scene.world.run_until(millis(500));
    for call in &calls[1..4] {
        scene.world.drop_task(*call);
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 1, 2].map(secs));
    assert_eq!(scene.paths(), ["0", "4", "5"]);
}

#[test]
fn who_leaves_the_line_makes_room() {
    let pace = Pace::every(secs(1)).unwrap().queue(2);
    let mut scene = Scene::new(well, |builder| builder.pace(pace));
    let calls = scene.calls(4);
    scene.world.settle();
    assert_eq!(scene.of(calls[3]).not_sent, Some(NotSent::Full));
    scene.world.drop_task(calls[1]);
    let next = scene.call(get(HERE));
    scene.world.run();
    assert_eq!(scene.of(next).over, secs(2));
}

#[test]
fn who_is_dropped_on_its_way_gives_its_place_to_the_next() {
    let pace = Pace::default().concurrent(1);
    let mut scene = Scene::new(well, |builder| builder.pace(pace)).way(secs(5));
    let calls = scene.calls(3);
    scene.world.run_until(secs(1));
    scene.world.drop_task(calls[0]);
    scene.world.run();
    assert_eq!(scene.paths(), ["1", "2"]);
    assert_eq!(scene.times(), [secs(6), secs(16)]);
}

#[test]
fn who_went_to_see_and_was_dropped_is_followed_by_another() {
    let handler = |arrival: &crate::common::Arrival| match arrival.number {
        0 => answer(429, &[("retry-after", "5")]),
        _ => answer(200, &[]),
    };
    // Answers take a while, so that there is time to lose interest in them.
    let mut scene = Scene::new(handler, |builder| builder).way(secs(2));
    let first = scene.call(get(HERE));
    scene.world.run_until(secs(4));
    let calls = scene.calls(4);
    scene.world.run_until(millis(10_500));
    // By now the first is back to see: it goes before those that came later.
    scene.world.drop_task(first);
    scene.world.run();
    for call in calls {
        assert_eq!(scene.of(call).status, Some(200));
        assert!(scene.of(call).over < secs(60));
    }
}

#[test]
fn who_waits_to_be_made_again_and_is_dropped_blocks_nobody() {
    let handler = |arrival: &crate::common::Arrival| match arrival.number {
        0 => answer(503, &[]),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| {
        builder.pace(Pace::default().concurrent(1)).backoff(secs(50), secs(50))
    });
    let calls = scene.calls(3);
    scene.world.settle();
    scene.world.drop_task(calls[0]);
    scene.world.run();
    assert_eq!(scene.of(calls[2]).status, Some(200));
    assert!(scene.of(calls[2]).over < secs(50));
}

#[test]
fn a_call_that_was_never_looked_at_blocks_nobody() {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace));
    let mut client = scene.client();
    let forgotten = Service::call(&mut client, get("http://example.com/forgotten"));
    let calls = scene.calls(2);
    scene.world.run_until(secs(10));
    for call in calls {
        assert_eq!(scene.of(call).status, Some(200), "it waits for one that nobody polls");
    }
    drop(forgotten);
    scene.world.run();
    assert_eq!(scene.paths(), ["0", "1"]);
}

#[test]
fn a_call_that_is_dropped_before_it_begins_leaves_nothing() {
    let pace = Pace::at_most("1/min burst 1".parse().unwrap()).concurrent(1).queue(0);
    let mut scene = Scene::new(well, |builder| builder.pace(pace));
    let mut client = scene.client();
    for _ in 0..10 {
        drop(Service::call(&mut client, get(HERE)));
    }
    assert_eq!(scene.ask(get(HERE)).status, Some(200));
    assert_eq!(scene.times(), [secs(0)]);
}

#[test]
fn an_answer_that_is_kept_for_ever_blocks_only_who_counts_what_is_at_once() {
    let pace = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace));
    let client = scene.client();
    let kept = scene.world.wait_for(client.oneshot(get(HERE))).unwrap();
    let calls = scene.calls(3);
    scene.world.run();
    assert_eq!(scene.of(calls[2]).over, secs(3));
    drop(kept);
}
