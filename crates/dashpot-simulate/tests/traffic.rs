//! Traffic, in words.

use std::time::Duration;

use dashpot_simulate::{Arrival, Setting, Traffic, together};

fn times(text: &str, seconds: u64) -> Vec<f64> {
    let traffic: Traffic = text.parse().unwrap();
    let setting = Setting { length: Duration::from_secs(seconds), ..Setting::default() };
    traffic.arrivals(&setting).unwrap().map(|arrival| arrival.at as f64 / 1e9).collect()
}

#[test]
fn evenly_or_at_once() {
    assert_eq!(times("steady 2/s", 2), [0.0, 0.5, 1.0, 1.5]);
    assert_eq!(times("burst 2 every 10s", 21), [0.0, 0.0, 10.0, 10.0, 20.0, 20.0]);
    // A window's end, from both sides, and then a rest of a window.
    let around = times("boundary 2/10s", 40);
    assert_eq!(around, [9.9, 9.95, 10.0, 10.05, 29.9, 29.95, 30.0, 30.05]);
    // Windows of no round length end where they end.
    let first = times("boundary 1/7s", 8)[1];
    assert_eq!(first, (7 - 1_704_067_200 % 7) as f64);
}

#[test]
fn at_random_but_the_same_for_a_seed() {
    assert_eq!(times("poisson 100/s", 10), times("poisson 100/s", 10));
    let many = times("poisson 100/s", 100).len();
    assert!((9_500..10_500).contains(&many), "{many}");
    let traffic: Traffic = "zipf 100/s callers 10 exponent 1.5".parse().unwrap();
    let setting = Setting { length: Duration::from_secs(100), ..Setting::default() };
    let mut counts = [0_u32; 10];
    traffic.arrivals(&setting).unwrap().for_each(|one| counts[one.caller as usize] += 1);
    // The n-th asks n^-1.5 times as often.
    let ratio = f64::from(counts[0]) / f64::from(counts[3]);
    assert!((6.0..11.0).contains(&ratio), "{counts:?}");
    let other = Setting { seed: 2, ..setting };
    let at = |setting| traffic.arrivals(setting).unwrap().map(|one| one.at).collect::<Vec<_>>();
    assert_ne!(at(&setting), at(&other));
}

#[test]
fn several_are_added_in_order() {
    let one = |at: u64| Arrival { at, caller: 0, cost: 1 };
    let parts: Vec<Box<dyn Iterator<Item = Arrival>>> = vec![
        Box::new([1, 5, 9].map(one).into_iter()),
        Box::new([2, 5].map(one).into_iter()),
        Box::new([0, 10].map(one).into_iter()),
    ];
    let all: Vec<u64> = together(parts).map(|arrival| arrival.at).collect();
    assert_eq!(all, [0, 1, 2, 5, 5, 9, 10]);
    assert_eq!(together(Vec::new()).count(), 0);
}

#[test]
fn what_is_written_is_read_again() {
    for text in [
        "steady 12/s",
        "burst 50 every 10s",
        "burst 50 every 90s",
        "burst 50 every 36h",
        "burst 50 every 1500ms",
        "burst 50 every 1ns",
        "burst 50 every month",
        "boundary",
        "boundary 100/min",
        "poisson 12/s",
        "zipf 50/s callers 1000 exponent 1.1",
    ] {
        let traffic: Traffic = text.parse().unwrap();
        assert_eq!(traffic.to_string().parse::<Traffic>().unwrap(), traffic, "{text}");
    }
}

#[test]
fn mistakes_say_what_would_be_right() {
    for (text, told) in [
        ("", "`` is no kind of traffic: write `steady 12/s`"),
        ("storm", "`storm` is no kind of traffic"),
        ("steady", "say how many, as in `steady 12/s`"),
        ("steady fast", "`fast` is no rate, as in `steady 12/s`"),
        ("steady 0/s", "`0/s` is no rate"),
        ("steady unlimited", "`unlimited` is no rate"),
        ("burst", "say how many at once"),
        ("burst 5", "say how often"),
        ("burst 5 every", "say how often"),
        ("burst 0 every 1s", "say how many at once"),
        ("zipf 5/s", "say how many there are"),
        ("zipf 5/s callers 0", "say how many there are"),
        ("zipf 5/s callers 9999999", "at most 1000000 callers"),
        ("zipf 5/s callers 5 exponent x", "an exponent is from 0 to 10"),
        ("zipf 5/s callers 5 five", "`five` is not `exponent`"),
        ("poisson 5/s now", "`now` is too much after `poisson …`"),
    ] {
        let error = text.parse::<Traffic>().expect_err(text).to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
    let unaimed = "boundary".parse::<Traffic>().unwrap().arrivals(&Setting::default()).err();
    assert!(unaimed.is_some_and(|error| error.to_string().contains("boundary 100/min")));
}
