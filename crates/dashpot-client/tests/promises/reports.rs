//! Why a call took as long as it did.

use std::time::Duration;

use dashpot::Percent;
use dashpot_client::{GaveUp, Pace, Patience, Report, Why};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{HERE, Outcome, Scene, well};
use crate::common::{answer, get, millis, post, secs};

/// What is said of waits adds up.
fn adds_up(outcome: &Outcome, made: Duration, way: Duration) {
    let report = &outcome.report;
    let sum: Duration = report.waits().map(|(_, time)| time).sum();
    assert_eq!(sum, report.waited(), "{report}");
    let on_the_way = way * 2 * report.attempts();
    assert_eq!(report.waited() + on_the_way, outcome.over - made, "{report}");
    for (why, time) in report.waits() {
        assert_eq!(report.waited_for(why), time, "{report}");
    }
}

proptest! {
    #![proptest_config(super::cases(128))]

    #[test]
    fn waits_and_ways_are_all_the_time_there_is(
        answers in vec((0..5_usize, 0..10_u64, 0..10_u64), 1..20),
        times in vec(0..5000_u64, 1..25),
        way in 0..800_u64,
        every in 1..500_u64,
        concurrent in 1..5_u64,
        seed in any::<u64>(),
    ) {
        let mut scene = Scene::new(
            move |arrival| {
                let (kind, wait, left) = answers[arrival.number % answers.len()];
                let (wait, left) = (wait.to_string(), left.to_string());
                let quota = [("x-ratelimit-limit", "50"), ("x-ratelimit-remaining", &left),
                    ("x-ratelimit-reset", &wait)];
                match kind {
                    0 => answer(429, &[("retry-after", &wait)]),
                    1 => answer(503, &[]),
                    2 => answer(200, &quota),
                    3 => Err("nothing".into()),
                    _ => answer(200, &[]),
                }
            },
            |builder| {
                let pace = Pace::every(millis(every)).unwrap().concurrent(concurrent);
                builder.seed(seed).pace(pace)
            },
        )
        .way(millis(way));
        let calls: Vec<usize> =
            times.iter().map(|at| scene.call_at(millis(*at), get(HERE))).collect();
        scene.world.run();
        for (call, at) in calls.iter().zip(&times) {
            adds_up(&scene.of(*call), millis(*at), millis(way));
        }
    }
}

#[test]
fn who_went_at_once_waited_for_nothing() {
    let mut scene = Scene::new(well, |builder| builder).way(secs(3));
    let report = scene.ask(get(HERE)).report;
    assert_eq!((report.waited(), report.waits().count()), (secs(0), 0));
    assert_eq!((report.last_status().unwrap().as_u16(), report.gave_up()), (200, None));
    assert_eq!(report.to_string(), "sent once");
}

/// For what the last of so many calls waited, and how long, in such a world.
fn why(scene: &mut Scene, many: usize) -> Report {
    let calls = scene.calls(many);
    scene.world.run();
    scene.of(*calls.last().unwrap()).report
}

#[test]
fn line_is_for_those_behind_others() {
    let mut scene = Scene::new(well, |builder| builder.pace(Pace::every(secs(2)).unwrap()));
    let report = why(&mut scene, 4);
    assert_eq!(report.waited(), secs(6));
    // While others were first, it was for them that it waited; then for the pace.
    assert_eq!(report.waited_for(Why::Line), secs(4), "{report}");
    assert_eq!(report.waited_for(Why::Pace), secs(2), "{report}");
}

#[test]
fn pace_is_also_for_all_lanes_together() {
    let mut scene = Scene::new(well, |builder| builder.overall("1/s".parse().unwrap()));
    scene.ask(get("http://one/"));
    let report = scene.ask(get("http://two/")).report;
    assert_eq!(report.to_string(), "sent once; waited 1.0s: pace 1.0s");
}

#[test]
fn concurrent_is_for_those_on_their_way() {
    let pace = Pace::default().concurrent(1);
    let mut scene = Scene::new(well, |builder| builder.pace(pace)).way(secs(1));
    let report = why(&mut scene, 2);
    assert_eq!(report.to_string(), "sent once; waited 2.0s: concurrent 2.0s");
}

#[test]
fn retry_after_is_what_the_server_said_to_anybody() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(429, &[("retry-after", "10")]),
            _ => answer(200, &[]),
        },
        |builder| builder,
    );
    let first = scene.call(get(HERE));
    let second = scene.call_at(secs(4), get(HERE));
    scene.world.run();
    let report = scene.of(first).report;
    assert!(report.waited_for(Why::RetryAfter) >= secs(10), "{report}");
    assert_eq!(report.attempts(), 2);
    let text = report.to_string();
    assert!(text.starts_with("sent 2 times; waited 10."), "{text}");
    assert!(text.contains("retry-after 10."), "{text}");
    let report = scene.of(second).report;
    let (told, line) = (report.waited_for(Why::RetryAfter), report.waited_for(Why::Line));
    assert!(told + line >= secs(6), "{report}");
}

#[test]
fn quota_thrift_caution_and_backoff_have_their_causes() {
    let told = |first: u16, headers: &'static [(&'static str, &'static str)]| {
        Scene::new(
            move |arrival| match arrival.number {
                0 => answer(first, headers),
                _ => answer(200, &[]),
            },
            |builder| builder.thrift(Percent::new(10), secs(1)),
        )
        .way(millis(100))
    };
    let mut scene = told(200, &[("ratelimit", "\"a\";r=0;t=20")]);
    scene.ask(get(HERE));
    let report = scene.ask(get(HERE)).report;
    assert!(report.waited_for(Why::Quota) >= secs(19), "{report}");

    let mut scene =
        told(200, &[("ratelimit-policy", "\"a\";q=100;w=60"), ("ratelimit", "\"a\";r=3;t=50")]);
    scene.ask(get(HERE));
    let report = why(&mut scene, 2);
    assert!(report.waited_for(Why::Thrift) > secs(0), "{report}");

    let mut scene = told(429, &[("retry-after", "2")]);
    scene.call(get(HERE));
    let second = scene.call_at(secs(1), get(HERE));
    scene.world.run();
    let report = scene.of(second).report;
    // One goes to see, and the second waits for it to come back.
    assert_eq!(report.waited_for(Why::Caution), millis(200), "{report}");

    let mut scene = told(503, &[]);
    let report = scene.ask(get(HERE)).report;
    assert_eq!(report.waited_for(Why::Backoff), report.waited(), "{report}");
    assert!(report.waited() > secs(0));
}

#[test]
fn each_why_has_a_word() {
    let words = [
        (Why::Line, "line"),
        (Why::Pace, "pace"),
        (Why::Concurrent, "concurrent"),
        (Why::RetryAfter, "retry-after"),
        (Why::Quota, "quota"),
        (Why::Thrift, "thrift"),
        (Why::Caution, "caution"),
        (Why::Backoff, "backoff"),
    ];
    for (why, word) in words {
        assert_eq!((why.as_str(), why.to_string().as_str()), (word, word));
    }
}

#[test]
fn why_it_was_not_made_again_is_said() {
    let mut scene = Scene::new(|_| answer(503, &[]), |builder| builder.attempts(1));
    let report = scene.ask(get(HERE)).report;
    assert_eq!(report.to_string(), format!("sent once; gave up: {}", GaveUp::Attempts));
    let report = scene.ask(post(HERE, "x")).report;
    assert!(matches!(report.gave_up(), Some(GaveUp::Attempts | GaveUp::Unsafe)));
}

#[test]
fn errors_have_reports_and_say_what_happened() {
    let pace = Pace::every(secs(1000)).unwrap();
    let mut scene =
        Scene::new(|_| Err("the cable is cut".into()), |builder| builder.pace(pace).attempts(1));
    let failed = scene.ask(get(HERE));
    assert_eq!(failed.error.as_deref(), Some("the cable is cut"));
    assert_eq!((failed.report.attempts(), failed.report.last_status()), (1, None));
    assert_eq!(failed.report.gave_up(), Some(GaveUp::Attempts));
    let late = scene.ask(get(HERE));
    assert_eq!(
        late.error.as_deref(),
        Some("not sent: it would have to wait longer than it may; allow more time, or call later")
    );
    assert_eq!(late.report.to_string(), "not sent");
}

#[test]
fn who_gave_up_waiting_says_how_long_it_did() {
    let pace = Pace::default().concurrent(1);
    let mut scene = Scene::new(well, |builder| builder.pace(pace)).way(secs(100));
    scene.call(get(HERE));
    let mut request = get(HERE);
    request.extensions_mut().insert(Patience(secs(7)));
    let outcome = scene.ask(request);
    assert_eq!(outcome.report.to_string(), "not sent; waited 7.0s: concurrent 7.0s");
}

#[test]
fn the_last_answer_is_what_is_reported() {
    let mut scene =
        Scene::new(|arrival| answer([503, 500, 404][arrival.number], &[]), |builder| builder);
    let outcome = scene.ask(get(HERE));
    assert_eq!(outcome.status, Some(404));
    assert_eq!(outcome.report.last_status().unwrap().as_u16(), 404);
    assert_eq!((outcome.report.attempts(), outcome.report.gave_up()), (3, None));
}

#[test]
fn an_error_after_an_answer_has_the_answers_status_no_more() {
    // "The last answer's status, if there was one."
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(503, &[]),
            _ => Err("gone".into()),
        },
        |builder| builder.attempts(2),
    );
    let outcome = scene.ask(get(HERE));
    assert_eq!(outcome.error.as_deref(), Some("gone"));
    assert_eq!(outcome.report.attempts(), 2);
}
