//! Paces of one's own, to the moment.

use std::time::Duration;

use dashpot::{Algorithm, Clock, Policy, Timestamp};
use dashpot_client::{NotSent, Pace, Why};

use super::{HERE, Scene, well};
use crate::common::{get, millis, secs};

/// A world with a pace, whose patience does not matter.
fn at(pace: Pace) -> Scene {
    Scene::new(well, |builder| builder.pace(pace).patience(secs(1_000_000_000)))
}

fn seconds(times: &[u64]) -> Vec<Duration> {
    times.iter().map(|time| secs(*time)).collect()
}

#[test]
fn every_keeps_the_interval_from_one_call_to_the_next() {
    let mut scene = at(Pace::every(secs(1)).unwrap());
    scene.calls(4);
    scene.call_at(millis(9500), get(HERE));
    scene.call_at(millis(9700), get(HERE));
    scene.world.run();
    let mut expected = seconds(&[0, 1, 2, 3]);
    expected.extend([millis(9500), millis(10_500)]);
    assert_eq!(scene.times(), expected);
}

#[test]
fn an_interval_of_nothing_is_none() {
    assert!(Pace::every(Duration::ZERO).is_err());
    assert!(Pace::every(Duration::MAX).is_err());
    assert!(Pace::every(Duration::from_nanos(1)).is_ok());
}

#[test]
fn a_bucket_has_a_burst_and_then_a_rate() {
    let mut scene = at(Pace::at_most("10/s burst 20".parse().unwrap()));
    scene.calls(25);
    scene.world.run();
    let mut expected = vec![Duration::ZERO; 20];
    expected.extend((1..=5).map(|tenths| millis(100 * tenths)));
    assert_eq!(scene.times(), expected);
}

#[test]
fn a_bucket_fills_up_again_and_no_further() {
    let mut scene = at(Pace::at_most("1/s burst 3".parse().unwrap()));
    scene.calls(3);
    scene.world.run_until(secs(100));
    scene.calls(4);
    scene.world.run();
    assert_eq!(scene.times(), seconds(&[0, 0, 0, 100, 100, 100, 101]));
}

#[test]
fn a_leaky_queue_flows_evenly_and_has_exactly_so_many_places() {
    // A burst of the quota does not count.
    for quota in ["5/s", "5/s burst 50"] {
        let mut scene = at(Pace::leaky(quota.parse().unwrap(), 100));
        let calls = scene.calls(110);
        scene.world.settle();
        // One goes and a hundred wait: nine find no place, and are told at once.
        let turned_away: Vec<usize> =
            calls.iter().copied().filter(|call| scene.world.is_over(*call)).skip(1).collect();
        assert_eq!(turned_away, calls[101..], "with {quota}");
        for call in turned_away {
            assert_eq!(scene.of(call).not_sent, Some(NotSent::Full));
            assert_eq!(scene.of(call).report.attempts(), 0);
        }
        scene.world.run();
        let expected: Vec<Duration> = (0..=100).map(|place| millis(200 * place)).collect();
        assert_eq!(scene.times(), expected, "with {quota}");
    }
}

#[test]
fn a_leaky_queue_has_room_again_when_somebody_left() {
    let mut scene = at(Pace::leaky("1/s".parse().unwrap(), 2));
    let calls = scene.calls(4);
    scene.world.run_until(millis(1500));
    assert_eq!(scene.of(calls[3]).not_sent, Some(NotSent::Full));
    let late = scene.calls(2);
    scene.world.run();
    assert_eq!(scene.of(late[0]).status, Some(200));
    assert_eq!(scene.of(late[1]).not_sent, Some(NotSent::Full));
    assert_eq!(scene.times(), seconds(&[0, 1, 2, 3]));
}

/// When this policy's window ends, counted from now.
fn end_of_window(scene: &Scene, policy: &Policy) -> Duration {
    let now = scene.world.clock.now();
    let window = policy.window_at(now).unwrap();
    Timestamp::from_nanos(window.end).since(now)
}

#[test]
fn calendar_days_begin_at_midnight_where_the_policy_says() {
    for zone in ["UTC", "Europe/Berlin", "Asia/Kolkata"] {
        let policy = Policy::builder("daily", "3/day".parse().unwrap())
            .algorithm(Algorithm::FixedWindow)
            .zone(zone.parse().unwrap())
            .build()
            .unwrap();
        let mut scene = at(Pace::by(&policy));
        scene.world.run_until(secs(1234));
        let midnight = secs(1234) + end_of_window(&scene, &policy);
        scene.calls(7);
        scene.world.run();
        let times = scene.times();
        assert_eq!(times[..3], [secs(1234); 3], "{zone}");
        assert_eq!(times[3..6], [midnight; 3], "{zone}");
        assert_eq!(times[6], midnight + secs(86_400), "{zone}");
    }
}

#[test]
fn a_fixed_window_lets_all_go_when_it_begins() {
    let policy = Policy::builder("window", "2/10s".parse().unwrap())
        .algorithm(Algorithm::FixedWindow)
        .build()
        .unwrap();
    let mut scene = at(Pace::by(&policy));
    scene.world.run_until(secs(3));
    let next = secs(3) + end_of_window(&scene, &policy);
    scene.calls(5);
    scene.world.run();
    let expected = [secs(3), secs(3), next, next, next + secs(10)];
    assert_eq!(scene.times(), expected);
}

#[test]
fn a_sliding_log_lets_one_go_for_each_that_is_forgotten() {
    let policy = Policy::builder("log", "2/10s".parse().unwrap())
        .algorithm(Algorithm::SlidingLog)
        .build()
        .unwrap();
    let mut scene = at(Pace::by(&policy));
    scene.call_at(secs(0), get(HERE));
    for _ in 0..4 {
        scene.call_at(secs(4), get(HERE));
    }
    scene.world.run();
    assert_eq!(scene.times(), seconds(&[0, 4, 10, 14, 20]));
}

#[test]
fn a_leaky_policy_with_a_queue_is_a_queue() {
    let policy = Policy::builder("leaky", "1/s".parse().unwrap())
        .algorithm(Algorithm::LeakyBucket)
        .queue(3)
        .build()
        .unwrap();
    let mut scene = at(Pace::by(&policy));
    scene.calls(6);
    scene.world.run();
    assert_eq!(scene.times(), seconds(&[0, 1, 2, 3]));
    let full = scene.all().iter().filter(|one| one.not_sent == Some(NotSent::Full)).count();
    assert_eq!(full, 2);
}

#[test]
fn two_quotas_count_together_and_the_wait_is_for_both() {
    let pace = Pace::every(secs(1)).unwrap().and("3/min".parse().unwrap());
    let mut scene = at(pace);
    scene.calls(5);
    scene.world.run();
    assert_eq!(scene.times(), seconds(&[0, 1, 2, 20, 40]));
}

#[test]
fn who_waits_for_one_quota_uses_nothing_of_the_other() {
    // If it did, of the ten none would be left for the second ten seconds.
    let pace = Pace::at_most("1/10s".parse().unwrap()).and("10/h burst 4".parse().unwrap());
    let mut scene = at(pace);
    scene.calls(4);
    scene.world.run();
    assert_eq!(scene.times(), seconds(&[0, 10, 20, 30]));
}

#[test]
fn the_order_of_two_quotas_does_not_matter() {
    let mut times = Vec::new();
    for quotas in [["2/s", "5/min"], ["5/min", "2/s"]] {
        let [first, second] = quotas.map(|quota| quota.parse().unwrap());
        let mut scene = at(Pace::at_most(first).and(second));
        scene.calls(12);
        scene.world.run();
        times.push(scene.times());
    }
    assert_eq!(times[0], times[1]);
    assert_eq!(times[0][11], secs(12 * 7));
}

#[test]
fn unlimited_is_no_limit() {
    let mut scene = at(Pace::at_most("unlimited".parse().unwrap()));
    scene.calls(500);
    scene.world.run();
    assert_eq!(scene.times(), vec![Duration::ZERO; 500]);
}

#[test]
fn nothing_a_second_is_never_and_is_told_at_once() {
    let zero = "0/s".parse().unwrap();
    for pace in [
        Pace::at_most(zero),
        Pace::leaky(zero, 5),
        Pace::every(secs(1)).unwrap().and(zero),
        Pace::default().concurrent(0),
        Pace::at_most("0 concurrent".parse().unwrap()),
    ] {
        let mut scene = at(pace.clone());
        let outcome = scene.ask(get(HERE));
        assert_eq!(outcome.not_sent, Some(NotSent::Never), "{pace:?}");
        assert_eq!(outcome.over, Duration::ZERO, "{pace:?}");
        assert!(scene.times().is_empty());
    }
}

#[test]
fn a_wait_for_the_pace_is_reported_as_such() {
    let mut scene = at(Pace::every(secs(3)).unwrap());
    let calls = scene.calls(3);
    scene.world.run();
    let second = scene.of(calls[1]).report;
    assert_eq!(second.waited_for(Why::Pace), secs(3), "{second}");
    let third = scene.of(calls[2]).report;
    // It is not first before the second has gone.
    assert_eq!(third.waited(), secs(6), "{third}");
    assert_eq!(third.waited_for(Why::Pace) + third.waited_for(Why::Line), secs(6), "{third}");
}
