//! What is learned of a quota: what is left, when there is more, and how calls are spread.

use std::time::Duration;

use dashpot::Percent;
use dashpot_client::Why;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, answer, get, millis, secs};

/// A server that tells this with its first answer, and nothing later.
fn tells_once(headers: &'static [(&'static str, &'static str)]) -> impl FnMut(&Arrival) -> Answer {
    move |arrival| match arrival.number {
        0 => answer(200, headers),
        _ => answer(200, &[]),
    }
}

/// When the second call arrives, for each seed.
fn second_calls(headers: &'static [(&'static str, &'static str)], seeds: u64) -> Vec<Duration> {
    (0..seeds)
        .map(|seed| {
            let mut scene = Scene::new(tells_once(headers), |builder| {
                builder.seed(seed).patience(secs(10_000))
            });
            scene.ask(get(HERE));
            let second = scene.ask(get(HERE));
            assert!(second.report.waited_for(Why::Quota) > secs(0), "{}", second.report);
            scene.times()[1]
        })
        .collect()
}

/// All within, and not all in one place: in each fifth of it is somebody.
fn are_spread(times: &[Duration], from: Duration, to: Duration) {
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(*least >= from && *most <= to, "{least:?} to {most:?}, not {from:?} to {to:?}");
    let fifth = (to - from) / 5;
    for number in 0..5 {
        let (begin, end) = (from + fifth * number, from + fifth * (number + 1));
        let is_there = |time: &&Duration| **time >= begin && **time <= end;
        assert!(times.iter().any(|time| is_there(&time)), "nobody from {begin:?} to {end:?}");
    }
}

#[test]
fn with_nothing_left_calls_wait_for_the_reset_and_a_tenth_of_that_at_the_most() {
    let headers: &[(&str, &str)] =
        &[("ratelimit-policy", "\"a\";q=10;w=60"), ("ratelimit", "\"a\";r=0;t=30")];
    are_spread(&second_calls(headers, 200), secs(30), secs(33));
}

#[test]
fn whatever_is_known_of_the_window_a_tenth_of_the_wait_is_random() {
    let headers: &[(&str, &str)] =
        &[("ratelimit-policy", "\"a\";q=10;w=60"), ("ratelimit", "\"a\";r=0;t=60")];
    are_spread(&second_calls(headers, 200), secs(60), secs(66));
}

#[test]
fn without_a_window_the_reset_is_all_that_is_known_of_it() {
    let headers: &[(&str, &str)] =
        &[("x-ratelimit-limit", "10"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "50")];
    let times = second_calls(headers, 100);
    assert!(times.iter().all(|time| *time >= secs(50) && *time <= secs(55)), "{times:?}");
    assert!(times.iter().max().unwrap().saturating_sub(secs(50)) > secs(1), "{times:?}");
}

#[test]
fn after_the_reset_one_goes_to_see_how_much_there_is() {
    let mut scene = Scene::new(
        tells_once(&[("ratelimit", "\"a\";r=0;t=10"), ("ratelimit-policy", "\"a\";q=9;w=10")]),
        |builder| builder.patience(secs(1000)),
    )
    .way(millis(500));
    scene.ask(get(HERE));
    scene.calls(5);
    scene.world.run();
    let times = &scene.times()[1..];
    let first = times[0];
    assert!(first >= millis(10_500), "{times:?}");
    assert!(times[1..].iter().all(|time| *time >= first + secs(1)), "{times:?}");
    assert_eq!(times.len(), 5);
}

#[test]
fn calls_on_their_way_count() {
    let mut scene = Scene::new(
        tells_once(&[("ratelimit", "\"a\";r=4;t=100"), ("ratelimit-policy", "\"a\";q=9;w=100")]),
        |builder| builder.patience(secs(1000)).thrift(Percent::new(0), secs(0)),
    )
    .way(secs(20));
    scene.ask(get(HERE));
    scene.calls(10);
    scene.world.run_until(secs(130));
    // Four are left, and ten would like to have them.
    assert_eq!(scene.times().len(), 5, "{:?}", scene.times());
    scene.world.run();
    assert_eq!(scene.times().len(), 11);
}

#[test]
fn of_several_quotas_the_narrowest_counts() {
    let headers: &[(&str, &str)] = &[
        ("ratelimit-policy", "\"sec\";q=10;w=1, \"day\";q=1000;w=86400"),
        ("ratelimit", "\"sec\";r=9;t=1, \"day\";r=0;t=500"),
    ];
    let times = second_calls(headers, 20);
    assert!(times.iter().all(|time| *time >= secs(500)), "{times:?}");
}

#[test]
fn what_is_left_here_is_nothing_to_another_lane() {
    let mut scene =
        Scene::new(|_| answer(200, &[("ratelimit", "\"a\";r=0;t=30")]), |builder| builder);
    scene.ask(get("http://one/"));
    assert_eq!(scene.ask(get("http://two/")).over, secs(0));
    assert!(scene.ask(get("http://one/")).over >= secs(30));
}

#[test]
fn moments_are_compared_with_the_servers_own_date() {
    // It believes to be in 2020.
    let headers: &[(&str, &str)] = &[
        ("date", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1577836840"),
    ];
    let times = second_calls(headers, 50);
    // Forty seconds later, by its own account.
    assert!(times.iter().all(|time| *time >= secs(40) && *time <= secs(45)), "{times:?}");
}

/// What is left of a hundred is five, for five seconds.
const LITTLE: &[(&str, &str)] =
    &[("ratelimit-policy", "\"a\";q=100;w=60"), ("ratelimit", "\"a\";r=5;t=3")];

#[test]
fn when_little_is_left_calls_are_spread_over_the_time_until_there_is_more() {
    let mut scene = Scene::new(tells_once(LITTLE), |builder| builder);
    scene.ask(get(HERE));
    let calls = scene.calls(4);
    scene.world.run();
    let times = scene.times();
    for pair in times[1..].windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= millis(300) && gap <= secs(1), "{times:?}");
    }
    let thrift = scene.of(calls[3]).report.waited_for(Why::Thrift);
    assert!(thrift > secs(0), "{}", scene.of(calls[3]).report);
}

#[test]
fn each_is_spread_by_a_second_at_the_most() {
    let headers: &[(&str, &str)] =
        &[("ratelimit-policy", "\"a\";q=100;w=600"), ("ratelimit", "\"a\";r=5;t=500")];
    let mut scene = Scene::new(tells_once(headers), |builder| builder);
    scene.ask(get(HERE));
    scene.calls(4);
    scene.world.run();
    let times = scene.times();
    assert!(times[1..].windows(2).all(|pair| pair[1] - pair[0] <= secs(1)), "{times:?}");
    assert!(times[4] >= secs(2), "hardly spread: {times:?}");
}

#[test]
fn without_thrift_they_go_on_until_nothing_is_left() {
    let mut scene = Scene::new(tells_once(LITTLE), |builder| {
        builder.thrift(Percent::new(0), secs(1)).patience(secs(100))
    });
    scene.ask(get(HERE));
    scene.calls(7);
    scene.world.run();
    let times = scene.times();
    assert_eq!(times[..6], [secs(0); 6], "{times:?}");
    assert!(times[6..].iter().all(|time| *time >= secs(3)), "{times:?}");
}

#[test]
fn with_much_left_nobody_is_spread() {
    let headers: &[(&str, &str)] =
        &[("ratelimit-policy", "\"a\";q=100;w=60"), ("ratelimit", "\"a\";r=50;t=30")];
    let mut scene = Scene::new(tells_once(headers), |builder| builder);
    scene.ask(get(HERE));
    scene.calls(30);
    scene.world.run();
    assert_eq!(scene.times(), vec![secs(0); 31]);
}
