//! The pictures of `docs/choosing.md`, and the figures beside them.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota};
use dashpot_simulate::{Run, Setting, Traffic, picture, run};
use dashpot_testkit::plot::is_drawn_in;

const PAGE: &str = include_str!("../../../docs/choosing.md");

const ALL: [Algorithm; 5] = [
    Algorithm::FixedWindow,
    Algorithm::SlidingWindow,
    Algorithm::SlidingLog,
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
];

fn runs(traffic: &str, limit: &str, queue: u64) -> Vec<Run> {
    let quota: Quota = limit.parse().unwrap();
    let traffic: Traffic = traffic.parse().unwrap();
    let setting = Setting { length: Duration::from_secs(40), ..Setting::default() };
    let of = |algorithm| {
        let mut policy = Policy::builder("p", quota).algorithm(algorithm);
        if algorithm == Algorithm::LeakyBucket {
            policy = policy.queue(queue);
        }
        let policy = policy.build().unwrap();
        run(&policy, traffic.arrivals(&setting).unwrap(), &setting)
    };
    ALL.map(of).to_vec()
}

/// Draws it, and sees that the page has a row of figures for each algorithm.
fn shown(title: &str, file: &str, runs: &[Run]) {
    is_drawn_in(&picture(title, runs), &format!("choosing/{file}.svg"));
    let section = PAGE.split(&format!("choosing/{file}.svg")).nth(1);
    let section = section.unwrap_or_else(|| panic!("the page does not show {file}"));
    for run in runs {
        let row = format!(
            "| {} | {} | {} | {} | {} |",
            run.policy.algorithm(),
            run.admitted,
            run.denied,
            run.worst.units,
            match run.p99_delay.as_secs_f64() {
                0.0 => "–".to_owned(),
                seconds => format!("{seconds:.1} s"),
            }
        );
        let table = section.split("\n\n").find(|part| part.contains("| algorithm")).unwrap();
        assert!(table.contains(&row), "the page is to say below {file}:\n{row}");
    }
}

#[test]
fn who_knows_when_windows_end() {
    let runs = runs("boundary 10/10s", "10/10s", 9);
    shown(
        "10 right before a window of 10 s ends, 10 right after; the limit is 10/10s",
        "boundary",
        &runs,
    );
}

#[test]
fn who_asks_three_times_too_often() {
    let runs = runs("steady 3/s", "10/10s", 9);
    shown("3 requests a second, all the time; the limit is 10/10s", "steady", &runs);
}

#[test]
fn who_comes_in_bursts() {
    let runs = runs("burst 8 every 10s", "10/10s", 9);
    shown("8 requests at once, every 10 seconds; the limit is 10/10s", "burst", &runs);
}
