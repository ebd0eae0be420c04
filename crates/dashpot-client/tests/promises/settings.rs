//! Settings that nobody should choose, and what comes of them: nothing bad.

use std::time::Duration;

use dashpot::{Percent, Quota};
use dashpot_client::{Manners, Pace, Patience, Polite, Report, Tokens};
use tower::ServiceExt;

use super::{HERE, Scene};
use crate::common::{Server, World, answer, get, secs};

#[test]
fn no_attempts_are_one() {
    // Or none at all; but it must be said.
    let mut scene = Scene::new(|_| answer(503, &[]), |builder| builder.attempts(0));
    let outcome = scene.ask(get(HERE));
    assert_eq!((outcome.status, outcome.report.attempts()), (Some(503), 1));
}

#[test]
fn absurd_times_come_to_an_end() {
    let zero = Duration::ZERO;
    for (base, cap) in
        [(zero, zero), (Duration::MAX, Duration::MAX), (secs(10), secs(1)), (zero, Duration::MAX)]
    {
        for patience in [zero, secs(60), Duration::MAX] {
            for hold in [zero, Duration::MAX] {
                let mut scene = Scene::new(
                    |arrival| match arrival.number {
                        0 => answer(503, &[]),
                        1 => answer(429, &[("retry-after", "18446744073709551615")]),
                        _ => answer(200, &[]),
                    },
                    |builder| builder.backoff(base, cap).patience(patience).longest_hold(hold),
                );
                let calls = scene.calls(3);
                scene.world.run();
                for call in calls {
                    let outcome = scene.of(call);
                    assert!(outcome.status.is_some() || outcome.error.is_some());
                    assert!(outcome.over <= patience.saturating_add(secs(1)), "{outcome:?}");
                }
            }
        }
    }
}

#[test]
fn absurd_shares_come_to_an_end() {
    for percent in [0, 100, 255] {
        let mut scene = Scene::new(
            |_| answer(503, &[]),
            |builder| {
                let builder = builder.retry_share(Percent::new(percent));
                let builder = builder.retry_floor(Quota::per_minute(0));
                let builder = builder.thrift(Percent::new(percent), Duration::MAX);
                builder.attempts(u32::MAX).patience(secs(3600))
            },
        );
        for number in 1..=20_u32 {
            scene.ask(get(HERE));
            let again = scene.times().len() as u32 - number;
            assert!(again <= number * u32::from(percent) / 100, "{again} of {number}");
        }
    }
}

#[test]
fn a_share_beyond_four_million_percent_is_just_large() {
    let share = Percent::of(u64::MAX, 1);
    let mut scene = Scene::new(
        |_| answer(503, &[]),
        |builder| builder.retry_share(share).attempts(20).patience(secs(100_000)),
    );
    assert_eq!(scene.ask(get(HERE)).report.attempts(), 20);
}

#[test]
fn absurd_paces_come_to_an_end() {
    let century = Duration::from_secs(100 * 365 * 86_400);
    for pace in [
        Pace::every(Duration::from_nanos(1)).unwrap(),
        Pace::every(century).unwrap(),
        Pace::default().concurrent(u64::MAX).queue(usize::MAX),
        Pace::at_most(Quota::per_second(u64::MAX)),
        Pace::leaky(Quota::per_second(u64::MAX), usize::MAX),
        Pace::leaky(Quota::per_second(1), 0),
    ] {
        let mut scene = Scene::new(|_| answer(200, &[]), |builder| builder.pace(pace.clone()));
        let calls = scene.calls(5);
        scene.world.run();
        assert_eq!(scene.of(calls[0]).status, Some(200), "{pace:?}");
        assert!(calls.iter().all(|call| scene.of(*call).over <= secs(61)), "{pace:?}");
    }
}

#[test]
fn no_lanes_are_enough() {
    let mut scene = Scene::new(|_| answer(200, &[]), |builder| builder.most_lanes(0));
    for number in 0..5 {
        assert_eq!(scene.ask(get(&format!("http://host{number}/"))).status, Some(200));
    }
}

#[test]
fn a_patience_without_end_is_no_patience_to_overflow() {
    let mut world = World::new();
    world.run_until(secs(86_400 * 365 * 100));
    let server = Server::new(&world.clock, |arrival| match arrival.number {
        0 => answer(429, &[("retry-after", "3")]),
        _ => answer(200, &[]),
    });
    let manners = Manners::builder().clock(world.clock.clone()).seed(1).build();
    let mut request = get(HERE);
    request.extensions_mut().insert(Patience(Duration::MAX));
    request.extensions_mut().insert(Tokens(u64::MAX));
    let response = world.wait_for(Polite::new(server, manners).oneshot(request)).unwrap();
    assert_eq!(response.extensions().get::<Report>().unwrap().attempts(), 2);
}
