//! Lines, paces and what is shown of them.

use dashpot::{Algorithm, Policy};
use dashpot_client::{NotSent, Pace};
use tower_service::Service;

use crate::common::{World, answer, get, millis, secs};
use crate::promises::{HERE, Scene};

/// Those who share a lane because there are too many went as fast as they liked.
#[test]
fn who_has_no_lane_of_its_own_keeps_its_pace() {
    let slow = Pace::every(secs(1)).unwrap();
    let mut scene = Scene::new(
        |_| answer(200, &[]),
        |builder| builder.most_lanes(1).lanes(move |call| call.lane().pace(&slow)),
    );
    scene.call(get("http://one/"));
    for _ in 0..5 {
        scene.call(get("http://two/"));
    }
    scene.world.run();
    assert_eq!(scene.times(), [0, 0, 1, 2, 3, 4].map(secs));
}

/// A part of a policy was taken for all of it.
#[test]
fn a_pace_by_a_part_of_a_policy_is_that_part() {
    let policy = |algorithm, queue| {
        let policy = Policy::builder("p", "10/min".parse().unwrap()).algorithm(algorithm);
        let policy = if queue { policy.queue(100) } else { policy };
        policy.build().unwrap().reduced_to(50)
    };
    for (policy, sixth) in [
        (policy(Algorithm::SlidingLog, false), 60),
        (policy(Algorithm::LeakyBucket, true), 60),
        (Policy::new("c", "10 concurrent".parse().unwrap()).unwrap().reduced_to(50), 7),
    ] {
        let mut scene = Scene::new(
            |_| answer(200, &[]),
            |builder| builder.pace(Pace::by(&policy)).patience(secs(300)),
        )
        .work(|_| secs(7));
        scene.calls(10);
        scene.world.run();
        assert_eq!(scene.times()[5], secs(sixth), "{:?}", policy.algorithm());
    }
}

/// Who was not looked at for a while went long after its patience was over.
#[test]
fn who_looks_too_late_does_not_go() {
    let pace = Pace::every(secs(10)).unwrap();
    let mut scene =
        Scene::new(|_| answer(200, &[]), |builder| builder.pace(pace).patience(secs(15)));
    let calls = scene.calls(2);
    scene.world.settle();
    scene.world.clock.advance(secs(60));
    scene.world.run();
    assert_eq!(scene.of(calls[1]).not_sent, Some(NotSent::TooLate { retry_after: None }));
    assert_eq!(scene.of(calls[1]).report.waited(), secs(60));
    assert_eq!(scene.times(), [secs(0)]);
}

/// Patience begins with the first look at a call.
#[test]
fn a_call_that_is_made_now_and_awaited_later_begins_then() {
    let mut world = World::new();
    let scene = Scene::new(|_| answer(200, &[]), |builder| builder.patience(secs(1)));
    let call = scene.client().call(get(HERE));
    scene.world.clock.advance(secs(60));
    assert_eq!(world.wait_for(call).unwrap().status(), 200);
}

/// The lane's key was part of what an answer shows of itself.
#[test]
fn an_answer_does_not_show_what_its_lane_is_told_apart_by() {
    let mut scene = Scene::new(
        |_| {
            let mut response = answer(200, &[])?;
            *response.body_mut() = "so that it is on its way".into();
            Ok(response)
        },
        |builder| builder.lanes(|call| call.lane().and_header(call, "authorization")),
    );
    let mut request = get(HERE);
    request.headers_mut().insert("authorization", "Bearer hunter2".parse().unwrap());
    let call = scene.client().call(request);
    let response = scene.world.wait_for(call).unwrap();
    let shown = format!("{response:?}");
    assert!(shown.contains("http://example.com") && !shown.contains("hunter2"), "{shown}");
}

/// One who came back too late to be made again kept its place, and nobody ever passed it.
#[test]
fn who_comes_back_too_late_leaves_the_line() {
    let mut scene = Scene::new(
        |arrival| answer(if arrival.number == 0 { 503 } else { 200 }, &[]),
        |builder| builder.patience(secs(1)),
    );
    let first = scene.call(get(HERE));
    scene.world.settle();
    scene.world.clock.advance(secs(60));
    scene.world.settle();
    assert_eq!(scene.of(first).not_sent, Some(NotSent::TooLate { retry_after: None }));
    assert_eq!(scene.ask(get(HERE)).status, Some(200));
}

/// Who shared a lane forgot what it was told as soon as it had one of its own.
#[test]
fn who_gets_a_lane_of_its_own_has_not_been_told_to_wait_meanwhile() {
    let mut scene = Scene::new(
        |arrival| match arrival.uri.host() {
            Some("two") if arrival.number == 1 => answer(429, &[("retry-after", "100")]),
            _ => answer(200, &[]),
        },
        |builder| builder.most_lanes(1).patience(secs(300)),
    );
    scene.call(get("http://one/"));
    scene.call_at(millis(59_500), get("http://two/"));
    scene.call_at(millis(60_500), get("http://two/"));
    scene.world.run();
    assert!(scene.times()[2] >= millis(159_500), "{:?}", scene.times());
}
