//! How many calls may be made again, and how long they wait before that.

use std::time::Duration;

use dashpot::{Percent, Quota};
use dashpot_client::{GaveUp, MannersBuilder, Why};

use super::{HERE, Scene};
use crate::common::{answer, get, millis, secs};

/// How many of so many calls that all fail are made again, if no time passes.
fn again(many: usize, settings: impl FnOnce(MannersBuilder) -> MannersBuilder) -> usize {
    let mut scene = Scene::new(
        |_| answer(503, &[]),
        |builder| settings(builder.attempts(2).backoff(Duration::ZERO, Duration::ZERO)),
    );
    for _ in 0..many {
        let outcome = scene.ask(get(HERE));
        let gave_up = outcome.report.gave_up();
        match outcome.report.attempts() {
            1 => assert_eq!(gave_up, Some(GaveUp::Budget)),
            _ => assert_eq!(gave_up, Some(GaveUp::Attempts)),
        }
    }
    assert_eq!(scene.world.time(), Duration::ZERO);
    scene.times().len() - many
}

fn no_floor(builder: MannersBuilder) -> MannersBuilder {
    builder.retry_floor("0/min".parse().unwrap())
}

#[test]
fn a_share_of_calls_is_made_again_and_no_more() {
    for (percent, many) in [(0, 100), (1, 1000), (10, 200), (20, 500), (50, 100), (100, 100)] {
        let made = again(many, |builder| no_floor(builder).retry_share(Percent::new(percent)));
        let may = many * usize::from(percent) / 100;
        assert!(made <= may && made + 1 >= may, "{made} of {may} with {percent} %");
    }
}

#[test]
fn a_fifth_is_the_share_if_nothing_is_said() {
    let made = again(200, no_floor);
    assert!((39..=40).contains(&made), "{made}");
}

#[test]
fn ten_in_a_minute_are_made_again_however_few_there_are() {
    assert_eq!(again(100, |builder| builder.retry_share(Percent::new(0))), 10);
    assert_eq!(again(5, |builder| builder.retry_share(Percent::new(0))), 5);
}

#[test]
fn the_share_and_the_floor_add_up() {
    let made = again(100, |builder| builder);
    assert!((29..=30).contains(&made), "{made}");
}

#[test]
fn the_floor_comes_back_with_time_and_each_lane_has_its_own() {
    let mut scene = Scene::new(
        |_| answer(503, &[]),
        |builder| {
            let builder = builder.attempts(2).backoff(Duration::ZERO, Duration::ZERO);
            builder.retry_share(Percent::new(0)).retry_floor(Quota::per_minute(3))
        },
    );
    let again = |uri: &str, scene: &mut Scene| -> u32 {
        (0..10).map(|_| scene.ask(get(uri)).report.attempts() - 1).sum()
    };
    assert_eq!(again("http://one/", &mut scene), 3);
    assert_eq!(again("http://two/", &mut scene), 3);
    scene.world.run_until(secs(20));
    assert_eq!(again("http://one/", &mut scene), 1);
    scene.world.run_until(secs(200));
    assert_eq!(again("http://one/", &mut scene), 3);
}

#[test]
fn a_floor_of_what_is_at_once_is_none() {
    let made = again(50, |builder| {
        builder.retry_share(Percent::new(0)).retry_floor("5 concurrent".parse().unwrap())
    });
    assert_eq!(made, 0);
}

#[test]
fn what_is_not_used_is_kept_for_a_hundred_attempts() {
    let mut scene = Scene::new(
        |arrival| answer(if arrival.number < 2000 { 200 } else { 503 }, &[]),
        |builder| no_floor(builder.attempts(2).backoff(Duration::ZERO, Duration::ZERO)),
    );
    for _ in 0..2000 {
        scene.ask(get(HERE));
    }
    let again: u32 = (0..100).map(|_| scene.ask(get(HERE)).report.attempts() - 1).sum();
    assert_eq!(again, 100, "a hundred were kept");
    let again: u32 = (0..100).map(|_| scene.ask(get(HERE)).report.attempts() - 1).sum();
    // What was kept is gone but for what came meanwhile, a fifth of two hundred at the most.
    assert!(again <= 40, "{again}");
}

#[test]
fn who_is_told_when_to_come_back_is_within_the_budget_too() {
    let mut scene = Scene::new(
        |_| answer(429, &[("retry-after", "0")]),
        |builder| no_floor(builder).retry_share(Percent::new(0)),
    );
    let outcome = scene.ask(get(HERE));
    assert_eq!((outcome.status, outcome.report.attempts()), (Some(429), 1));
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::Budget));
}

/// When attempts were made, from one to the next, for each seed.
fn gaps(attempts: usize, base: Duration, cap: Duration) -> Vec<Vec<Duration>> {
    (0..200)
        .map(|seed| {
            let mut scene = Scene::new(
                |_| answer(503, &[]),
                |builder| {
                    let builder = builder.seed(seed).attempts(attempts as u32);
                    builder.backoff(base, cap).patience(secs(10_000))
                },
            );
            let outcome = scene.ask(get(HERE));
            assert_eq!(outcome.report.waited_for(Why::Backoff), outcome.over);
            scene.times().windows(2).map(|pair| pair[1] - pair[0]).collect()
        })
        .collect()
}

#[test]
fn backoff_is_anything_up_to_a_bound_that_doubles_up_to_a_cap() {
    let all = gaps(6, millis(500), secs(3));
    for (number, bound) in [500, 1000, 2000, 3000, 3000].map(millis).into_iter().enumerate() {
        let these: Vec<Duration> = all.iter().map(|gaps| gaps[number]).collect();
        let (least, most) = (these.iter().min().unwrap(), these.iter().max().unwrap());
        assert!(*most <= bound, "{most:?} of {bound:?}");
        assert!(*most >= bound * 9 / 10, "{most:?} of {bound:?}");
        // Full jitter: from nothing on.
        assert!(*least <= bound / 10, "{least:?} of {bound:?}");
    }
}

#[test]
fn half_a_second_and_thirty_are_the_bounds_if_nothing_is_said() {
    let mut most = [Duration::ZERO; 9];
    for seed in 0..100 {
        let mut scene = Scene::new(
            |_| answer(503, &[]),
            |builder| builder.seed(seed).attempts(10).patience(secs(10_000)),
        );
        scene.ask(get(HERE));
        for (most, pair) in most.iter_mut().zip(scene.times().windows(2)) {
            *most = (*most).max(pair[1] - pair[0]);
        }
    }
    assert!(most[0] <= millis(500) && most[0] >= millis(400), "{most:?}");
    assert!(most[8] <= secs(30) && most[8] >= secs(24), "{most:?}");
}
