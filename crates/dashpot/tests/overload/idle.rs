//! A limit that is not used says nothing, and does not grow.

use crate::capacity::{BAND, LATENCY, WORK, WORKERS, adaptive, door};
use crate::door::{Door, Load};
use crate::server::Server;
use crate::{MILLI, SECOND};

const LIMIT: u64 = 40;
const HOUR: u64 = 3600;

/// One at a time, so often.
fn every(every: u64) -> Load {
    Load { every, work: WORK, spread: 0.0, fails: 0 }
}

fn unchanged(load: Load, seconds: u64) {
    let mut door = door(LIMIT, load);
    door.run(seconds);
    assert_eq!(door.limits, [(0, LIMIT)]);
    assert!(door.turned_away.is_empty());
}

#[test]
fn a_request_each_second_changes_nothing() {
    unchanged(every(SECOND), HOUR);
}

#[test]
fn nor_does_one_at_a_time() {
    unchanged(every(WORK + MILLI), HOUR / 6);
}

/// So many workers that all are served at once, each for 100 ms: it is the distance between them that says how many are in.
fn so_many_at_once(limit: u64, many: u64, seconds: u64) -> Door {
    let work = 100 * MILLI;
    assert!(work < LATENCY);
    let load = Load { every: work / many, work, spread: 0.0, fails: 0 };
    let mut door = Door::new(adaptive(limit), SECOND, Server::new(1000), load);
    door.run(seconds);
    assert!(door.gate.status().in_flight.abs_diff(many) <= 1);
    door
}

#[test]
fn less_than_half_of_it_changes_nothing() {
    let door = so_many_at_once(LIMIT, LIMIT / 2 - 2, HOUR / 6);
    assert_eq!(door.limits, [(0, LIMIT)]);
}

/// With 25 at once, and now and then one more or less, the limit ends where they are less than half of it: above 2 × 24, and no
/// higher than 2 × 26 + 1.
#[test]
fn more_than_half_of_it_raises_it_until_it_is_not() {
    let door = so_many_at_once(LIMIT, 25, 600);
    let (least, most) = door.limits_since(60 * SECOND);
    assert!(least > 48 && most <= 53, "{:?}", door.limits);
    assert_eq!(least, most, "and there it stays");
}

/// A limit that was found under load is kept when the load is gone: a quiet night is no reason to try more in the morning.
#[test]
fn what_was_found_is_kept() {
    let mut door = door(BAND.0, Load { every: SECOND / 500, work: WORK, spread: 0.0, fails: 0 });
    door.run(60);
    // Those who still wait are served first, and the round that began with them ends.
    door.load.every = SECOND;
    door.run(10);
    let found = door.gate.status().limit;
    assert!((BAND.0..=BAND.1).contains(&found));
    let evening = door.now;
    door.run(HOUR);
    assert_eq!(door.limits_since(evening), (found, found));
    assert!(WORKERS < found);
}
