//! After a denial: how long the whole lane waits, and how it begins again.

use std::time::Duration;

use dashpot_client::Why;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, answer, get, millis, secs};

/// Turns away so many with these headers, and then nobody.
fn denies(
    many: usize,
    status: u16,
    headers: &'static [(&'static str, &'static str)],
) -> impl FnMut(&Arrival) -> Answer {
    move |arrival| match arrival.number < many {
        true => answer(status, headers),
        false => answer(200, &[]),
    }
}

/// How much longer than it was told a call waits, for each seed: before the attempt after so many denials.
fn random_parts(
    denials: usize,
    told: u64,
    header: &'static [(&'static str, &'static str)],
) -> Vec<Duration> {
    (0..200)
        .map(|seed| {
            let mut scene = Scene::new(denies(denials, 429, header), |builder| {
                builder.seed(seed).attempts(20).patience(secs(100_000))
            });
            assert_eq!(scene.ask(get(HERE)).status, Some(200));
            let times = scene.times();
            let gap = times[denials] - times[denials - 1];
            assert!(gap >= secs(told), "{times:?}");
            gap - secs(told)
        })
        .collect()
}

fn is_up_to(parts: &[Duration], most: Duration) {
    let longest = *parts.iter().max().unwrap();
    assert!(longest <= most, "{longest:?} is more than {most:?}");
    assert!(longest >= most * 8 / 10, "{longest:?} is much less than {most:?}");
    let shortest = *parts.iter().min().unwrap();
    assert!(shortest <= most / 5, "{shortest:?} at least, of {most:?}");
}

#[test]
fn the_random_part_is_half_a_second_that_doubles_with_every_denial_in_a_row() {
    let one: &[(&str, &str)] = &[("retry-after", "1")];
    is_up_to(&random_parts(1, 1, one), millis(500));
    is_up_to(&random_parts(2, 1, one), millis(1000));
    is_up_to(&random_parts(3, 1, one), millis(2000));
}

#[test]
fn the_random_part_is_a_tenth_of_a_long_wait() {
    is_up_to(&random_parts(1, 100, &[("retry-after", "100")]), secs(10));
}

#[test]
fn one_goes_first_and_then_two_and_then_four() {
    let mut scene =
        Scene::new(denies(1, 429, &[("retry-after", "5")]), |builder| builder.patience(secs(1000)))
            .way(millis(500));
    let first = scene.call(get(HERE));
    scene.world.run_until(secs(2));
    let calls = scene.calls(11);
    scene.world.run();
    assert_eq!(scene.of(first).report.attempts(), 2);
    let times = &scene.times()[1..];
    let mut groups: Vec<(Duration, usize)> = Vec::new();
    for time in times {
        match groups.last_mut() {
            Some((at, many)) if at == time => *many += 1,
            _ => groups.push((*time, 1)),
        }
    }
    let many: Vec<usize> = groups.iter().map(|(_, many)| *many).collect();
    assert_eq!(many[..3], [1, 2, 4], "{groups:?}");
    // One way and back lies between them.
    assert_eq!(groups[1].0 - groups[0].0, secs(1), "{groups:?}");
    let last = scene.of(calls[10]).report;
    let caution = calls.iter().map(|call| scene.of(*call).report.waited_for(Why::Caution));
    assert!(caution.max() > Some(secs(0)), "{last}");
}

#[test]
fn who_is_turned_away_again_makes_all_wait_again() {
    let mut scene =
        Scene::new(denies(2, 429, &[("retry-after", "5")]), |builder| builder.patience(secs(1000)))
            .way(millis(100));
    scene.call(get(HERE));
    scene.world.run_until(secs(1));
    scene.calls(6);
    scene.world.run();
    let times = scene.times();
    // The one that went to see was turned away: nobody else went meanwhile.
    assert!(times[1] >= secs(5) && times[1] <= secs(6), "{times:?}");
    assert!(times[2] >= times[1] + secs(5), "{times:?}");
    assert_eq!(times.len(), 2 + 7);
}

#[test]
fn the_whole_lane_waits_after_any_denial() {
    for (status, headers) in [
        (429, &[("retry-after", "7")][..]),
        (503, &[("retry-after", "7")]),
        (500, &[("retry-after", "7")]),
        (529, &[("retry-after-ms", "7000")]),
        (429, &[("x-ms-retry-after-ms", "7000")]),
        (403, &[("retry-after", "7")]),
        (403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "7")]),
        (429, &[("ratelimit", "\"a\";r=0;t=7")]),
        (429, &[("retry-after", "3"), ("retry-after-ms", "7000")]),
    ] {
        let mut scene = Scene::new(denies(1, status, headers), |builder| builder);
        let first = scene.call(get(HERE));
        let other = scene.call_at(secs(1), get(HERE));
        scene.world.run();
        assert_eq!(scene.of(first).status, Some(200), "{status} {headers:?}");
        assert_eq!(scene.of(other).status, Some(200), "{status} {headers:?}");
        let times = scene.times();
        assert_eq!(times.len(), 3);
        assert!(times[1] >= secs(7) && times[2] <= secs(9), "{status} {headers:?}: {times:?}");
    }
}

#[test]
fn a_lack_of_rights_is_not_waited_for() {
    for headers in [&[][..], &[("x-ratelimit-remaining", "3"), ("x-ratelimit-reset", "7")]] {
        let mut scene = Scene::new(denies(1, 403, headers), |builder| builder);
        let first = scene.ask(get(HERE));
        assert_eq!((first.status, first.over), (Some(403), secs(0)));
        assert_eq!(first.report.gave_up(), None);
        assert_eq!(scene.ask(get(HERE)).over, secs(0));
    }
}

#[test]
fn what_is_said_with_a_success_is_no_denial() {
    let mut scene = Scene::new(denies(9, 200, &[("retry-after", "7")]), |builder| builder);
    assert_eq!(scene.ask(get(HERE)).over, secs(0));
    assert_eq!(scene.ask(get(HERE)).over, secs(0));
}

#[test]
fn what_is_said_is_believed_up_to_a_day() {
    let denial = || denies(1, 429, &[("retry-after", "864000")]);
    for (longest, least, most) in [(None, 86_400, 95_040), (Some(secs(60)), 60, 66)] {
        let mut scene = Scene::new(denial(), |builder| match longest {
            Some(longest) => builder.longest_hold(longest).patience(secs(1_000_000)),
            None => builder.patience(secs(1_000_000)),
        });
        let outcome = scene.ask(get(HERE));
        assert_eq!(outcome.status, Some(200));
        let over = outcome.over;
        assert!(over >= secs(least) && over <= secs(most), "{over:?}");
    }
}

#[test]
fn another_lane_does_not_wait() {
    let mut scene = Scene::new(denies(1, 429, &[("retry-after", "30")]), |builder| builder);
    scene.call(get("http://one/"));
    scene.world.settle();
    assert_eq!(scene.ask(get("http://two/")).over, secs(0));
}

#[test]
fn a_failure_without_a_word_holds_nobody() {
    let mut scene = Scene::new(denies(1, 500, &[]), |builder| builder);
    scene.call(get(HERE));
    scene.world.settle();
    assert_eq!(scene.ask(get(HERE)).over, secs(0));
}
