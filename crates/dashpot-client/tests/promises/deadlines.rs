//! Patience: who would be too late is told at once, and nobody goes later.

use std::time::Duration;

use dashpot_client::{GaveUp, NotSent, Pace, Patience, Why};

use super::{HERE, Scene, well};
use crate::common::{Arrival, answer, get, millis, secs};

fn patient(time: Duration) -> http::Request<http_body_util::Full<bytes::Bytes>> {
    let mut request = get(HERE);
    request.extensions_mut().insert(Patience(time));
    request
}

/// How long it says it would take, of one that is too late.
fn least(not_sent: Option<NotSent>) -> Option<Duration> {
    match not_sent {
        Some(NotSent::TooLate { retry_after }) => retry_after,
        other => panic!("not too late: {other:?}"),
    }
}

fn denies_once(seconds: &'static str) -> impl FnMut(&Arrival) -> super::Answer {
    move |arrival| match arrival.number {
        0 => answer(429, &[("retry-after", seconds)]),
        _ => answer(200, &[]),
    }
}

#[test]
fn who_would_wait_too_long_for_the_pace_is_told_at_once() {
    let pace = Pace::every(secs(40)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(30)));
    let calls = scene.calls(2);
    scene.world.run();
    let late = scene.of(calls[1]);
    assert_eq!(late.over, secs(0));
    assert_eq!(least(late.not_sent), Some(secs(40)));
    assert_eq!(scene.times(), [secs(0)]);
}

#[test]
fn a_request_has_a_patience_of_its_own_be_it_longer_or_shorter() {
    let pace = Pace::every(secs(40)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(30)));
    scene.call(get(HERE));
    let longer = scene.call(patient(secs(50)));
    scene.world.run_until(secs(1));
    let shorter = scene.call(patient(secs(5)));
    scene.world.run();
    assert_eq!(scene.of(longer).over, secs(40));
    assert_eq!(scene.of(longer).status, Some(200));
    assert!(least(scene.of(shorter).not_sent).is_none_or(|time| time > secs(5)));
}

#[test]
fn the_last_moment_is_not_too_late() {
    let pace = Pace::every(secs(10)).unwrap();
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(10)));
    scene.calls(2);
    scene.world.run();
    assert_eq!(scene.times(), [0, 10].map(secs));
}

#[test]
fn without_any_patience_who_can_goes_and_all_others_are_told() {
    let pace = Pace::at_most("1/s burst 2".parse().unwrap());
    let mut scene = Scene::new(well, |builder| builder.pace(pace).patience(secs(0)));
    let calls = scene.calls(3);
    scene.world.run();
    assert_eq!(scene.times(), [secs(0); 2]);
    let late = scene.of(calls[2]);
    assert_eq!((late.over, least(late.not_sent)), (secs(0), Some(secs(1))));
}

#[test]
fn a_long_retry_after_is_not_waited_for_and_its_answer_given() {
    let mut scene = Scene::new(denies_once("600"), |builder| builder);
    let outcome = scene.ask(get(HERE));
    assert_eq!((outcome.status, outcome.over), (Some(429), secs(0)));
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::TooLate));
    // Who comes later is told how long it will be at least, and is not sent.
    scene.world.run_until(secs(100));
    let next = scene.ask(get(HERE));
    let time = least(next.not_sent).unwrap();
    assert_eq!(next.over, secs(100));
    // 500 of the 600 seconds, and the random part.
    assert!(time >= secs(500) && time <= secs(560), "{time:?}");
    assert_eq!(scene.times().len(), 1);
}

#[test]
fn who_comes_back_when_told_is_let_go() {
    let mut scene = Scene::new(denies_once("600"), |builder| builder);
    scene.ask(get(HERE));
    let time = least(scene.ask(get(HERE)).not_sent).unwrap();
    let later = scene.call_at(time, get(HERE));
    scene.world.run();
    assert_eq!(scene.of(later).status, Some(200));
    // The least it would take: so it goes at once then.
    assert_eq!(scene.of(later).over, time);
}

#[test]
fn those_behind_are_told_when_a_long_retry_after_comes_while_they_wait() {
    let pace = Pace::default().concurrent(1);
    let mut scene = Scene::new(denies_once("600"), |builder| builder.pace(pace)).way(millis(500));
    let calls = scene.calls(5);
    let patient = scene.call(patient(secs(10_000)));
    scene.world.run_until(secs(5));
    assert_eq!(scene.of(calls[0]).status, Some(429));
    for call in &calls[1..] {
        let outcome = scene.of(*call);
        assert_eq!(outcome.over, secs(1), "told when it was known");
        let time = least(outcome.not_sent).unwrap();
        assert!(time >= secs(600) && time <= secs(660), "{time:?}");
        assert_eq!(outcome.report.attempts(), 0);
    }
    scene.world.run();
    assert_eq!(scene.of(patient).status, Some(200));
    assert!(scene.of(patient).report.waited_for(Why::RetryAfter) >= secs(590));
}

#[test]
fn those_who_wait_for_the_pace_are_told_as_well() {
    // The answer takes its time: the others wait for the pace meanwhile, not for the answer.
    let pace = Pace::every(secs(10)).unwrap();
    let mut scene = Scene::new(denies_once("600"), |builder| builder.pace(pace)).way(secs(1));
    let calls = scene.calls(4);
    scene.world.run();
    for call in &calls[1..] {
        let outcome = scene.of(*call);
        assert_eq!(outcome.over, secs(2), "told when it was known: {outcome:?}");
        assert!(least(outcome.not_sent).is_some_and(|time| time >= secs(600)));
    }
}

#[test]
fn who_waits_for_an_answer_of_another_gives_up_in_time() {
    // Nobody knows when the one on its way will be back.
    let pace = Pace::default().concurrent(1);
    let mut scene = Scene::new(well, |builder| builder.pace(pace)).way(secs(500));
    scene.call(get(HERE));
    let waiting = [scene.call(patient(secs(20))), scene.call(patient(secs(10)))];
    scene.world.run_until(secs(100));
    for (call, time) in waiting.into_iter().zip([20_u32, 10]) {
        let outcome = scene.of(call);
        // The last moment is not too late: the next one is.
        assert_eq!(outcome.over.as_millis(), u128::from(time) * 1000);
        assert_eq!(outcome.not_sent, Some(NotSent::TooLate { retry_after: None }));
        assert_eq!(outcome.report.waited(), outcome.over, "{}", outcome.report);
    }
}

#[test]
fn no_attempt_begins_after_the_patience_however_often_it_fails() {
    for seed in 0..50 {
        let mut scene = Scene::new(
            |_| answer(503, &[]),
            |builder| {
                builder.seed(seed).attempts(1000).patience(secs(20)).backoff(secs(2), secs(8))
            },
        );
        let outcome = scene.ask(get(HERE));
        assert_eq!(outcome.status, Some(503));
        let times = scene.times();
        assert!(times.iter().all(|time| *time <= secs(20)), "{times:?}");
        assert_eq!(outcome.report.attempts() as usize, times.len());
        let gave_up = outcome.report.gave_up();
        assert!(matches!(gave_up, Some(GaveUp::TooLate | GaveUp::Budget)), "{gave_up:?}");
    }
}

#[test]
fn who_was_to_be_made_again_and_learns_that_it_is_too_late_says_what_it_was_answered() {
    // The first fails and is to be made again; meanwhile the second is told to wait for long.
    let mut scene = Scene::new(
        |arrival| match arrival.uri.path() {
            "/first" => answer(503, &[]),
            _ => answer(429, &[("retry-after", "600")]),
        },
        |builder| builder.backoff(secs(40), secs(40)).seed(5),
    );
    let first = scene.call(get("http://example.com/first"));
    scene.world.settle();
    assert!(!scene.world.is_over(first));
    scene.call(get("http://example.com/second"));
    scene.world.run();
    let outcome = scene.of(first);
    assert_eq!(outcome.report.attempts(), 1);
    assert_eq!(outcome.report.last_status().map(|status| status.as_u16()), Some(503));
    assert!(least(outcome.not_sent).is_some_and(|time| time >= secs(600)), "{outcome:?}");
    // When it would have stood in line again.
    assert!(outcome.over > secs(0) && outcome.over <= secs(40), "{outcome:?}");
    assert_eq!(outcome.report.gave_up(), Some(GaveUp::TooLate));
}

#[test]
fn how_long_one_attempt_takes_is_not_bounded() {
    let mut scene = Scene::new(well, |builder| builder.patience(secs(1))).way(secs(1000));
    let outcome = scene.ask(get(HERE));
    assert_eq!((outcome.status, outcome.over), (Some(200), secs(2000)));
}

#[test]
fn those_behind_are_told_at_once_even_if_the_first_has_time() {
    let mut scene = Scene::new(
        |_| answer(429, &[("retry-after", "600")]),
        |builder| builder.pace(Pace::every(secs(5)).unwrap()).attempts(1),
    )
    .way(secs(1));
    scene.call(get(HERE));
    let with_patience = |patience| {
        let mut request = get(HERE);
        request.extensions_mut().insert(Patience(patience));
        request
    };
    let first = scene.call(with_patience(secs(10_000)));
    let behind = scene.call(with_patience(secs(100)));
    scene.world.run_until(secs(3));
    assert!(!scene.world.is_over(first));
    assert_eq!(scene.of(behind).over, secs(2));
    assert!(least(scene.of(behind).not_sent).is_some_and(|time| time >= secs(600)));
}
