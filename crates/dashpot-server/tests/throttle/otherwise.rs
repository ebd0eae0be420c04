//! Each line of the table of what redis-cell does otherwise.

use std::time::{Duration, Instant};

use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::Reply;

use crate::scene::{DAY, Scene, ask, ask_all, both, told, words};

const BILLION: i64 = 1_000_000_000;

#[test]
fn a_billion_a_second() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    let told = ask(&mut connection, "a", &[BILLION - 1, BILLION, 1]);
    assert_eq!(told, [0, BILLION, BILLION - 1, -1, 1]);
    let told = ask(&mut connection, "b", &[BILLION - 1, BILLION, 1, BILLION]);
    assert_eq!(told, [0, BILLION, 0, -1, 1]);
    // A bucket that takes a year, at that rate.
    let year = 365 * DAY * BILLION;
    let told = ask(&mut connection, "c", &[year - 1, BILLION, 1, year - 5]);
    assert_eq!(told, [0, year, 5, -1, 365 * DAY]);
    // 1.5 million a second: redis-cell divides by 0 to tell what remains.
    let told = ask(&mut connection, "d", &[9, 1_500_000, 1, 4]);
    assert_eq!(told, [0, 10, 6, -1, 1]);
}

#[test]
fn faster_than_a_billion_a_second() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    let told = ask(&mut connection, "a", &[2 * BILLION - 1, 2 * BILLION, 1, 2 * BILLION]);
    assert_eq!(told, [0, 2 * BILLION, 0, -1, 1]);
    // All of an hour and a bit.
    let hour = 3600 * 3 * BILLION;
    let told = ask(&mut connection, "b", &[hour, 3 * BILLION, 1, hour + 1]);
    assert_eq!(told, [0, hour + 1, 0, -1, 3601]);
    let told = ask(&mut connection, "c", &[0, i64::MAX, 1]);
    assert_eq!(told, [0, 1, 0, -1, 1]);
    let told = ask(&mut connection, "d", &[i64::MAX - 1, i64::MAX, 1, i64::MAX]);
    assert_eq!(told, [0, i64::MAX, 0, -1, 1]);
    let told = ask(&mut connection, "e", &[i64::MAX - 1, i64::MAX, DAY, i64::MAX]);
    assert_eq!(told, [0, i64::MAX, 0, -1, DAY]);
}

/// On Redis it is exact, or it is an error.
#[test]
fn very_fast_on_redis() {
    let redis = RedisServer::start();
    let scene = Scene::on(&redis);
    let mut connection = scene.connect();
    for (nth, (numbers, exact)) in [
        ([BILLION - 1, BILLION, 1, 1], [0, BILLION, BILLION - 1, -1, 1]),
        ([BILLION - 1, BILLION, 1, BILLION], [0, BILLION, 0, -1, 1]),
        ([9, 1_500_000, 1, 4], [0, 10, 6, -1, 1]),
        ([0, 1_000_000, 1, 1], [0, 1, 0, -1, 1]),
        ([0, i64::MAX, 1, 1], [0, 1, 0, -1, 1]),
        ([i64::MAX - 1, i64::MAX, DAY, i64::MAX], [0, i64::MAX, 0, -1, DAY]),
    ]
    .into_iter()
    .enumerate()
    {
        match connection.command(&words(format!("{nth}"), &numbers)).unwrap() {
            Reply::Error(why) => {
                assert!(why.starts_with("Cell error: Store error: "), "{numbers:?}: {why}")
            }
            reply => assert_eq!(told(&reply), exact, "{numbers:?}"),
        }
    }
}

/// redis-cell takes a seventh of a second for 142857142 ns: of a billion seconds, six would be missing.
#[test]
fn seven_a_second() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    for (key, count) in [("seven", 7), ("eleven", 11), ("thirteen", 13)] {
        let all = count * BILLION;
        let told = ask(&mut connection, key, &[all - 1, count, 1, all]);
        assert_eq!(told, [0, all, 0, -1, BILLION], "{key}");
        // And one more, which is not there.
        let told = ask(&mut connection, key, &[all - 1, count, 1, 3 * count]);
        assert_eq!((told[0], told[4]), (1, BILLION), "{key} {told:?}");
    }
    both(|scene| {
        let told = ask(&mut scene.connect(), "k", &[6_999_999, 7, 1, 7_000_000]);
        assert_eq!(told, [0, 7_000_000, 0, -1, 1_000_000]);
        let told = ask(&mut scene.connect(), "l", &[6_999_999, 7, 1, 6_999_999]);
        assert_eq!(told, [0, 7_000_000, 1, -1, 1_000_000]);
    });
}

#[test]
fn a_little_more_than_a_second_is_two() {
    both(|scene| {
        let mut connection = scene.connect();
        // 1.0004 and 1.0000001 seconds to come back.
        let told = ask(&mut connection, "a", &[0, 10_000, 10_004]);
        assert_eq!(told, [0, 1, 0, -1, 2]);
        let told = ask(&mut connection, "b", &[0, 10_000_000, 10_000_001]);
        assert_eq!(told, [0, 1, 0, -1, 2]);
        assert_eq!(ask(&mut connection, "c", &[0, 10_000, 10_000]), [0, 1, 0, -1, 1]);
        // The wait, too, if it was asked about fast enough.
        let fast_enough = (0..100).any(|nth| {
            let key = format!("fast-{nth}");
            let numbers: &[i64] = &[0, 10_000, 10_009];
            let begun = Instant::now();
            let told = ask_all(&mut connection, &[(&key, numbers), (&key, numbers)]);
            let fast_enough = begun.elapsed() < Duration::from_micros(900);
            if fast_enough {
                assert_eq!(told, [[0, 1, 0, -1, 2], [1, 1, 0, 2, 2]]);
            }
            fast_enough
        });
        assert!(fast_enough, "too busy to tell");
    });
}

#[test]
fn a_large_burst() {
    const MOST: i64 = i64::MAX;
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    // One more than can be told, and one of them is taken.
    assert_eq!(ask(&mut connection, "a", &[MOST, 30, 60, 0]), [0, MOST, MOST, -1, 0]);
    assert_eq!(ask(&mut connection, "a", &[MOST, 30, 60]), [0, MOST, MOST, -1, 2]);
    assert_eq!(ask(&mut connection, "a", &[MOST, 30, 60]), [0, MOST, MOST - 1, -1, 4]);
    assert_eq!(ask(&mut connection, "b", &[MOST - 1, 30, 60]), [0, MOST, MOST - 1, -1, 2]);
    // Nearly all of it, which takes 292 years to come back.
    let told = ask(&mut connection, "c", &[MOST, BILLION, 1, MOST]);
    assert_eq!(told, [0, MOST, 1, -1, MOST / BILLION + 1]);
}

/// Buckets that take longer than nanoseconds of 64 bits can tell, which is 584 years: it is told as that.
#[test]
fn a_bucket_of_thousands_of_years() {
    const MOST: i64 = i64::MAX;
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    const MILLION: i64 = 1_000_000;
    const LONGEST: i64 = 18_446_744_074;
    let told = ask(&mut connection, "a", &[MILLION - 1, 1, DAY, MILLION]);
    assert_eq!(told, [0, MILLION, 0, -1, LONGEST]);
    let told = ask(&mut connection, "a", &[MILLION - 1, 1, DAY, MILLION]);
    assert_eq!(told, [1, MILLION, 0, LONGEST, LONGEST]);
    // Far longer than can be told.
    let told = ask(&mut connection, "b", &[MOST, 1, DAY, MOST]);
    assert_eq!(told, [0, MOST, 1, -1, LONGEST]);
    let told = ask(&mut connection, "b", &[MOST, 1, DAY, MOST]);
    assert_eq!(told, [1, MOST, 1, LONGEST, LONGEST]);
}
