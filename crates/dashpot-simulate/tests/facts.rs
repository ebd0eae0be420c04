//! What pictures are to show: the boundary burst, the refill, the smooth output.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota};
use dashpot_simulate::{Run, Setting, Traffic, picture, run};

const MINUTE: Duration = Duration::from_secs(60);

fn simulate(traffic: &str, limit: &str, algorithm: Algorithm, queue: Option<u64>) -> Run {
    let quota: Quota = limit.parse().unwrap();
    let mut policy = Policy::builder("p", quota).algorithm(algorithm);
    if let Some(places) = queue {
        policy = policy.queue(places);
    }
    let policy = policy.build().unwrap();
    let traffic = traffic.parse::<Traffic>().unwrap().aimed_at(quota);
    let setting = Setting { length: 4 * MINUTE, ..Setting::default() };
    run(&policy, traffic.arrivals(&setting).unwrap(), &setting)
}

#[test]
fn a_fixed_window_lets_twice_the_limit_through_at_its_end() {
    let run = simulate("boundary", "100/min", Algorithm::FixedWindow, None);
    assert_eq!(run.worst.units, 200);
    assert_eq!(run.denied, 0, "and nothing is wrong with any of its windows");
    // Within two hundredths of a window, around its end.
    let end = MINUTE.as_nanos() as u64;
    assert!((end..end + end / 100).contains(&run.worst.at));
    let peak = run.followed.iter().map(|(_, units)| *units).max();
    assert_eq!(peak, Some(200), "and the line that is drawn has that peak");
}

#[test]
fn a_sliding_log_does_not_and_nor_does_a_sliding_window_here() {
    for algorithm in [Algorithm::SlidingLog, Algorithm::SlidingWindow] {
        let run = simulate("boundary", "100/min", algorithm, None);
        assert_eq!((run.worst.units, run.denied), (100, run.asked / 2), "{algorithm}");
    }
}

/// All of its burst at once, then as fast as it is refilled.
#[test]
fn a_token_bucket_bursts_and_then_keeps_its_rate() {
    let run = simulate("steady 10/s", "60/min burst 30", Algorithm::TokenBucket, None);
    let counts = run.series.counts();
    let second = Duration::from_nanos(run.series.part()).as_secs_f64();
    assert_eq!(second, 2.0);
    // Three seconds at 10/s, while one comes back each second, and then one each second.
    let first: u64 = counts[..2].iter().map(|part| part.passed).sum();
    assert_eq!(first, 33);
    assert!(counts[2..].iter().all(|part| part.passed == 2), "{counts:?}");
    // The bound: the burst, and what comes back within a minute.
    assert_eq!(run.worst.units, 89);
}

#[test]
fn a_queue_lets_them_out_evenly() {
    let run = simulate("burst 30 every 60s", "60/min", Algorithm::LeakyBucket, Some(29));
    assert_eq!((run.admitted, run.denied), (120, 0));
    let counts = run.series.counts();
    assert!(counts.iter().all(|part| part.passed <= 2), "one each second: {counts:?}");
    assert_eq!(run.longest_delay, Duration::from_secs(29));
    // The same traffic at a token bucket leaves as it came.
    let bucket = simulate("burst 30 every 60s", "60/min", Algorithm::TokenBucket, None);
    assert_eq!(bucket.series.counts()[0].passed, 30);
}

#[test]
fn few_callers_are_busy_and_only_they_are_denied() {
    let run = simulate("zipf 100/s callers 1000", "60/min", Algorithm::TokenBucket, None);
    assert!(run.callers > 900, "{}", run.callers);
    assert!((1..50).contains(&run.callers_denied), "{}", run.callers_denied);
    assert!(run.worst.units <= 120);
}

/// Numbers that are drawn, read back out of the picture.
fn numbers(svg: &str, begin: &str) -> Vec<f64> {
    let path = svg.split(begin).nth(1).expect(begin).split('"').next().unwrap();
    let words = path.split(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The line touches twice the height of the limit's, from the same axis: as drawn, not as meant.
#[test]
fn the_peak_that_is_drawn_is_twice_the_limit() {
    let run = simulate("boundary", "100/min", Algorithm::FixedWindow, None);
    let svg = picture("boundary", &[run]);
    let right = svg.split("translate(460 12)").nth(1).unwrap();
    // Where the axis has 0 and 200, by their labels: text stands 4 below its mark.
    let label = |mark: &str| -> f64 {
        let before = right.split(&format!("\">{mark}</text>")).next().unwrap();
        let y = before.rsplit("y=\"").next().unwrap().split('"').next().unwrap();
        y.parse::<f64>().unwrap() - 4.0
    };
    let (zero, limit, twice) = (label("0"), label("100"), label("200"));
    let lines: Vec<&str> = right.split("<path d=\"M").skip(1).collect();
    let ys = |line: &str| -> Vec<f64> {
        let path = line.split('"').next().unwrap();
        let steps = path.split(['V', ' ']).skip(1);
        steps.map(|step| step.split('H').next().unwrap().parse().unwrap()).collect()
    };
    let of = |color: &str| {
        let line = lines.iter().find(|line| line.contains(&format!("stroke=\"{color}\"")));
        ys(line.unwrap_or_else(|| panic!("no line of {color}")))
    };
    let near = |one: f64, other: f64| (one - other).abs() < 0.2;
    assert!(of("#777").iter().all(|y| near(*y, limit)), "the limit is drawn at 100");
    let peak = of("#b3362b").into_iter().fold(f64::MAX, f64::min);
    assert!(near(peak, twice), "{peak} is not {twice}");
    assert!(near(of("#b3362b")[0], zero));
    assert!(svg.contains("at most 200 in 1min, 2.00 times the limit"));
    assert!(!numbers(&svg, "<path d=\"").is_empty());
}

#[test]
fn a_picture_is_sound_whatever_there_is_to_draw() {
    let nothing = simulate("burst 1 every 1h", "0/s", Algorithm::TokenBucket, None);
    let unlimited = simulate("poisson 1/s", "unlimited", Algorithm::TokenBucket, None);
    for svg in [
        picture("<&\">", &[nothing, unlimited]),
        picture("", &[]),
        dashpot_simulate::over_time("x", &dashpot_simulate::Series::growing(10)),
    ] {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("<&") && !svg.contains("style="), "{svg}");
    }
}
