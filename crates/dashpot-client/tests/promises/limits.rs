//! How many at once, how many wait, and all lanes together.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use dashpot_client::{NotSent, Pace, Why};
use http_body::Body;
use tower::ServiceExt;

use super::{HERE, Scene, well};
use crate::common::{answer, get, millis, secs};

/// A world with a pace, and answers that have to be read: an empty one is read as soon as it is there.
fn at(pace: Pace) -> Scene {
    let page = |_: &_| Ok(http::Response::new(http_body_util::Full::from("a page")));
    Scene::new(page, |builder| builder.pace(pace).patience(secs(1_000_000)))
}

/// What is done with an answer.
#[derive(Clone, Copy)]
enum Then {
    Drop,
    /// Read to its end, and the body kept.
    Read,
}

fn keep(scene: &mut Scene, time: Duration, then: Then) -> usize {
    let (client, clock) = (scene.client(), scene.world.clock.clone());
    scene.world.spawn(async move {
        let response = client.oneshot(get(HERE)).await.unwrap();
        clock.sleep(time).await;
        match then {
            Then::Drop => drop(response),
            Then::Read => {
                let mut body = response.into_body();
                std::future::poll_fn(|context| {
                    loop {
                        match Pin::new(&mut body).poll_frame(context) {
                            Poll::Ready(Some(frame)) => drop(frame.unwrap()),
                            Poll::Ready(None) => return Poll::Ready(()),
                            Poll::Pending => return Poll::Pending,
                        }
                    }
                })
                .await;
                clock.sleep(secs(1000)).await;
                drop(body);
            }
        }
    })
}

#[test]
fn a_call_is_on_its_way_until_its_answer_was_dropped() {
    let mut scene = at(Pace::default().concurrent(2));
    for _ in 0..5 {
        keep(&mut scene, secs(5), Then::Drop);
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 0, 5, 5, 10].map(secs));
}

#[test]
fn a_call_is_on_its_way_until_its_answer_was_read() {
    let mut scene = at(Pace::default().concurrent(1));
    for _ in 0..3 {
        keep(&mut scene, secs(5), Then::Read);
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 5, 10].map(secs));
}

#[test]
fn a_quota_of_what_is_at_once_is_the_same() {
    let policy = dashpot::Policy::new("four", "2 concurrent".parse().unwrap()).unwrap();
    for pace in [
        Pace::at_most("2 concurrent".parse().unwrap()),
        Pace::by(&policy),
        Pace::default().and("2 concurrent".parse().unwrap()),
        Pace::default().concurrent(3).and("2 concurrent".parse().unwrap()),
    ] {
        let mut scene = at(pace.clone());
        for _ in 0..4 {
            keep(&mut scene, secs(5), Then::Drop);
        }
        scene.world.run();
        assert_eq!(scene.times(), [0, 0, 5, 5].map(secs), "{pace:?}");
    }
}

#[test]
fn the_way_counts_and_each_next_goes_when_one_is_back() {
    let mut scene = at(Pace::default().concurrent(1)).way(millis(500));
    let calls = scene.calls(3);
    scene.world.run();
    assert_eq!(scene.times(), [500, 1500, 2500].map(millis));
    let third = scene.of(calls[2]).report;
    assert_eq!(third.waited(), secs(2), "{third}");
    let second = scene.of(calls[1]).report;
    assert_eq!(second.waited_for(Why::Concurrent), secs(1), "{second}");
}

#[test]
fn who_is_between_two_attempts_is_not_on_its_way() {
    // The first is told to come back; meanwhile others could go, if its lane were not held: so by another status.
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(500, &[]),
            _ => answer(200, &[]),
        },
        |builder| builder.pace(Pace::default().concurrent(1)).backoff(secs(20), secs(20)).seed(3),
    );
    let calls = scene.calls(2);
    scene.world.run();
    let (first, second) = (scene.of(calls[0]), scene.of(calls[1]));
    assert_eq!(first.report.attempts(), 2);
    assert!(first.over > secs(0), "{first:?}");
    // "Stands where it stood before" is about order, not about a server that is free.
    assert!(second.over <= first.over, "{second:?} waits for {first:?}");
}

#[test]
fn as_many_wait_as_there_are_places() {
    let mut scene = at(Pace::every(secs(1)).unwrap().queue(3));
    let calls = scene.calls(6);
    scene.world.settle();
    for call in &calls[4..] {
        assert_eq!(scene.of(*call).not_sent, Some(NotSent::Full));
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 1, 2, 3].map(secs));
}

#[test]
fn a_thousand_and_twenty_four_wait_if_nothing_else_is_said() {
    let mut scene = at(Pace::every(secs(1)).unwrap());
    let calls = scene.calls(1027);
    scene.world.settle();
    let full: Vec<usize> =
        calls.iter().copied().filter(|call| scene.world.is_over(*call)).skip(1).collect();
    assert_eq!(full, calls[1025..]);
    scene.world.run();
    assert_eq!(scene.times().len(), 1025);
}

#[test]
fn with_no_places_nobody_waits_and_who_can_goes() {
    let mut scene = at(Pace::at_most("1/s burst 2".parse().unwrap()).queue(0));
    let calls = scene.calls(4);
    let later = scene.call_at(secs(1), get(HERE));
    let too_soon = scene.call_at(millis(1500), get(HERE));
    scene.world.run();
    let outcomes: Vec<_> = calls.iter().map(|call| scene.of(*call).not_sent).collect();
    assert_eq!(outcomes, [None, None, Some(NotSent::Full), Some(NotSent::Full)]);
    assert_eq!(scene.of(later).status, Some(200));
    assert_eq!(scene.of(too_soon).not_sent, Some(NotSent::Full));
    assert_eq!(scene.of(too_soon).over, millis(1500));
    assert_eq!(scene.times(), [0, 0, 1].map(secs));
}

#[test]
fn with_no_places_and_one_at_once_the_second_is_turned_away() {
    let mut scene = at(Pace::default().concurrent(1).queue(0)).way(secs(1));
    let calls = scene.calls(2);
    let next = scene.call_at(millis(2001), get(HERE));
    scene.world.run();
    assert_eq!(scene.of(calls[0]).status, Some(200));
    assert_eq!(scene.of(calls[1]).not_sent, Some(NotSent::Full));
    assert_eq!(scene.of(next).status, Some(200));
}

#[test]
fn who_is_turned_away_uses_nothing() {
    let mut scene = at(Pace::at_most("1/min burst 1".parse().unwrap()).queue(0));
    scene.calls(50);
    let next = scene.call_at(secs(60), get(HERE));
    scene.world.run();
    assert_eq!(scene.of(next).status, Some(200));
    assert_eq!(scene.times(), [0, 60].map(secs));
}

#[test]
fn an_overall_limit_counts_all_lanes_together() {
    let mut scene = Scene::new(well, |builder| {
        builder.overall("1/s burst 2".parse().unwrap()).patience(secs(1000))
    });
    for number in 0..6 {
        scene.call(get(&format!("http://lane{number}/")));
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 0, 1, 2, 3, 4].map(secs));
    assert!(scene.all().iter().all(|one| one.status == Some(200)));
}

#[test]
fn several_overall_limits_count_together_with_the_pace_of_a_lane() {
    let mut scene = Scene::new(well, |builder| {
        builder
            .overall("1/s".parse().unwrap())
            .overall("4/min".parse().unwrap())
            .pace(Pace::every(secs(2)).unwrap())
            .patience(secs(1000))
    });
    let there: Vec<usize> = (0..3).map(|_| scene.call(get("http://there/"))).collect();
    let here: Vec<usize> = (0..3).map(|_| scene.call(get("http://here/"))).collect();
    scene.world.run();
    let times = scene.times();
    // Four, and then one each quarter of a minute.
    assert_eq!(times[4..], [15, 30].map(secs), "{times:?}");
    assert_eq!(times[0], secs(0));
    assert!(times[..4].windows(2).all(|pair| pair[1] - pair[0] >= secs(1)), "{times:?}");
    assert!(times[3] <= secs(4), "needlessly slow: {times:?}");
    for lane in [there, here] {
        let over: Vec<_> = lane.iter().map(|call| scene.of(*call).over).collect();
        assert!(over.windows(2).all(|pair| pair[1] - pair[0] >= secs(2)), "{over:?}");
    }
}

#[test]
fn who_waits_for_its_own_pace_uses_nothing_of_the_overall_limit() {
    let mut scene = Scene::new(well, |builder| {
        builder.overall("2/h burst 2".parse().unwrap()).pace(Pace::every(secs(30)).unwrap())
    });
    scene.call(get("http://slow/1"));
    let waiting = scene.call(get("http://slow/2"));
    scene.world.settle();
    scene.world.drop_task(waiting);
    let other = scene.call_at(secs(1), get("http://other/"));
    scene.world.run();
    assert_eq!(scene.of(other).over, secs(1));
}
