//! What redis-cell's own page and tests promise, in real time.

use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::redis::Connection;

use crate::scene::{ask, both};

#[test]
fn the_example_of_its_readme() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "user123", &[15, 30, 60]), [0, 16, 15, -1, 2]);
        assert_eq!(ask(&mut connection, "user124", &[15, 30, 60, 1]), [0, 16, 15, -1, 2]);
        // Different kinds of limits are different keys.
        let read = ask(&mut connection, "user123-read-rate", &[15, 30, 60]);
        assert_eq!(read, [0, 16, 15, -1, 2]);
        let write = ask(&mut connection, "user123-write-rate", &[5, 10, 60]);
        assert_eq!(write, [0, 6, 5, -1, 6]);
    });
}

/// A bucket of five, one a second.
const FIVE: [i64; 3] = [4, 1, 1];

/// Asks for so much at this time after the start, or a little later.
fn at(connection: &mut Connection, start: Instant, millis: u64, quantity: i64) -> [i64; 5] {
    thread::sleep(Duration::from_millis(millis).saturating_sub(start.elapsed()));
    let told = ask(connection, "foo", &[&FIVE[..], &[quantity]].concat());
    // What is certain in whole seconds is so for a while.
    let late = start.elapsed() - Duration::from_millis(millis);
    assert!(late < Duration::from_millis(700), "too busy to tell");
    told
}

#[test]
fn a_bucket_is_used_and_comes_back_by_the_second() {
    both(|scene| {
        let connection = &mut scene.connect();
        let start = Instant::now();
        // You can never make a request larger than the maximum.
        assert_eq!(at(connection, start, 0, 6), [1, 5, 5, -1, 0]);
        for used in 1..=5 {
            assert_eq!(at(connection, start, 0, 1), [0, 5, 5 - used, -1, used]);
        }
        assert_eq!(at(connection, start, 0, 1), [1, 5, 0, 1, 5]);
        // The first was taken a little after the start, so all that follows is asked a little later.
        assert_eq!(at(connection, start, 3050, 1), [0, 5, 2, -1, 3]);
        assert_eq!(at(connection, start, 3150, 1), [0, 5, 1, -1, 4]);
        assert_eq!(at(connection, start, 4050, 1), [0, 5, 1, -1, 4]);
    });
}

#[test]
fn a_look_a_larger_one_and_one_too_large() {
    both(|scene| {
        let connection = &mut scene.connect();
        let start = Instant::now();
        assert_eq!(at(connection, start, 0, 1), [0, 5, 4, -1, 1]);
        assert_eq!(at(connection, start, 0, 0), [0, 5, 4, -1, 1]);
        assert_eq!(at(connection, start, 0, 2), [0, 5, 2, -1, 3]);
        assert_eq!(at(connection, start, 0, 5), [1, 5, 2, 3, 3]);
    });
}

#[test]
fn who_waits_as_long_as_told_is_let_pass() {
    both(|scene| {
        let mut connection = scene.connect();
        let mut once = || ask(&mut connection, "user123", &[0, 1, 2, 1]);
        assert_eq!(once(), [0, 1, 0, -1, 2]);
        assert_eq!(once(), [1, 1, 0, 2, 2]);
        thread::sleep(Duration::from_secs(2));
        assert_eq!(once(), [0, 1, 0, -1, 2]);
    });
}

/// How often something may happen in other units of time: so much each, and nothing else.
#[test]
fn rates_by_day_hour_minute_and_period() {
    both(|scene| {
        let mut connection = scene.connect();
        for (key, numbers, each) in [
            ("day", [0, 24, 86_400], 3600),
            ("hour", [0, 6, 3600], 600),
            ("minute", [0, 6, 60], 10),
            ("period", [0, 6, 120], 20),
            ("second", [4, 5, 1], 1),
        ] {
            let told = ask(&mut connection, key, &numbers);
            assert_eq!(told, [0, numbers[0] + 1, numbers[0], -1, each], "{key}");
        }
    });
}
