//! A limit that finds the capacity of a server, and stays there.
//!
//! What is right can be told. Eight workers and 48 ms of work are 166.7 answers in a second. Of n at once each takes n / 8 × 48 ms, which
//! is 250 ms for 41.7: with 41 at once everybody is in time, with 42 nobody is. From a round with 42 the limit goes to
//! 0.9 × 42, rounded down, and up again by one each round. So the band is 37 to 42, and it is left by nothing but the server.

use dashpot::{Gate, GateBuilder};

use crate::door::{Door, Load};
use crate::server::Server;
use crate::{MILLI, SECOND, nanos};

pub(crate) const WORKERS: u64 = 8;
pub(crate) const WORK: u64 = 48 * MILLI;
pub(crate) const LATENCY: u64 = 250 * MILLI;
const TICK: u64 = 100 * MILLI;
const WAIT: u64 = SECOND;
const PLACES: u64 = 50;

/// Answers in a second, at best.
pub(crate) const CAPACITY: f64 = WORKERS as f64 * SECOND as f64 / WORK as f64;
/// One more than can be answered in time.
const TOO_MANY: u64 = WORKERS * LATENCY / WORK + 1;
pub(crate) const BAND: (u64, u64) = (TOO_MANY * 9 / 10, TOO_MANY);

/// Long enough to see every state there is many times.
const LONG: u64 = 120;

/// So many times as much as the server can do.
pub(crate) fn overload(times: f64) -> Load {
    let every = SECOND as f64 / CAPACITY / times;
    Load { every: every as u64, work: WORK, spread: 0.0, fails: 0 }
}

pub(crate) fn adaptive(limit: u64) -> GateBuilder {
    Gate::builder(limit).max(1000).latency(nanos(LATENCY)).places(PLACES)
}

pub(crate) fn door(limit: u64, load: Load) -> Door {
    Door::new(adaptive(limit), WAIT, Server::new(WORKERS), load)
}

fn is_within(door: &Door, since: u64, band: (u64, u64)) {
    let (least, most) = door.limits_since(since);
    let told = format!("{least} to {most}, not {} to {}: {:?}", band.0, band.1, door.limits);
    assert!(least >= band.0 && most <= band.1, "{told}");
}

/// The limit has come down and gone up again, between the ends of what is allowed.
fn goes_through(door: &Door, since: u64, band: (u64, u64)) {
    is_within(door, since, band);
    assert_eq!(door.limits_since(since), band, "{:?}", door.limits);
}

/// 41 rounds. One lasts until ten have begun, which is at most a second's tenth and what ten take one after another by so many at
/// once, and then for the latency at most.
pub(crate) fn time_from_below() -> u64 {
    (1..TOO_MANY).map(|limit| TICK + 10 * WORK / limit + LATENCY).sum()
}

/// In a round the limit falls by a tenth. Before that ten must have begun: that is so at the latest when all who were in are
/// out, and a tick is over; and then comes the latency.
pub(crate) fn time_from_above(limit: u64, too_many: u64, slowness: u64) -> u64 {
    let falling = std::iter::successors(Some(limit), |limit| Some(limit * 9 / 10));
    let falling = falling.take_while(|limit| *limit >= too_many);
    falling.map(|limit| limit * slowness * WORK / WORKERS + TICK + LATENCY).sum()
}

#[test]
fn from_below() {
    let mut door = door(1, overload(3.0));
    door.run(LONG);
    goes_through(&door, time_from_below(), BAND);
}

#[test]
fn from_above() {
    let limit = 10 * TOO_MANY;
    let mut door = door(limit, overload(3.0));
    door.run(LONG);
    goes_through(&door, time_from_above(limit, TOO_MANY, 1), BAND);
}

/// If it is only just too much, there are moments in which nobody waits. Nothing changes but that: half of the limit is in use then, too.
#[test]
fn by_a_load_that_is_hardly_too_much() {
    let mut door = door(1, overload(1.1));
    door.run(LONG);
    goes_through(&door, time_from_below(), BAND);
}

/// When work takes from half of 48 ms to one and a half, and people come as unevenly. With 27 at once the longest is just in time, so no
/// round lowers a limit that is not above that: it is never below 0.9 × 28. With 42 every second one is late; that of ten no more than
/// one is happens in eleven rounds of 1024, and it takes many in a row to get there.
#[test]
fn with_work_of_every_length() {
    let in_time_for_all = WORKERS * LATENCY / (WORK * 3 / 2);
    let band = ((in_time_for_all + 1) * 9 / 10, TOO_MANY);
    for limit in [1, 10 * TOO_MANY] {
        let load = Load { spread: 0.5, ..overload(3.0) };
        let mut door = door(limit, load);
        door.run(10 * LONG);
        is_within(&door, time_from_below().max(time_from_above(limit, TOO_MANY, 1)), band);
    }
}

/// A step is one up, or a tenth down; and there is a tick between two.
#[test]
fn in_steps() {
    for (limit, spread) in [(1, 0.0), (1, 0.5), (10 * TOO_MANY, 0.0), (10 * TOO_MANY, 0.5)] {
        let mut door = door(limit, Load { spread, ..overload(3.0) });
        door.run(LONG);
        assert!(door.limits.len() > 100, "{:?}", door.limits);
        for pair in door.limits.windows(2) {
            let [(then, before), (now, after)] = [pair[0], pair[1]];
            assert!(after == before + 1 || after == before * 9 / 10, "{before}, then {after}");
            assert!(now - then >= TICK, "{before} at {then}, {after} at {now}");
        }
    }
}

/// Everything takes five times as long for half a minute: 8 at once are in time then, and 9 are not, so it is 8 or 9. Afterwards the limit
/// is where it was, one round for each that is missing.
#[test]
fn through_an_incident() {
    let mut door = door(BAND.0, overload(3.0));
    door.run(30);
    goes_through(&door, 5 * SECOND, BAND);
    door.server.be_slower(5.0);
    door.run(30);
    let too_many = WORKERS * LATENCY / (5 * WORK) + 1;
    let found = door.now - 30 * SECOND + time_from_above(TOO_MANY, too_many, 5);
    is_within(&door, found, (too_many * 9 / 10, too_many));
    door.server.be_slower(1.0);
    let healthy = door.now;
    door.run(LONG);
    let rounds = TOO_MANY - too_many * 9 / 10 + 1;
    goes_through(&door, healthy + rounds * (TICK + LATENCY), BAND);
    let before = door.answered(15 * SECOND, 30 * SECOND, WAIT);
    let after = door.answered(healthy + SECOND, door.now, WAIT);
    assert!(after >= 0.99 * before, "{before} each second, then {after}");
}

/// Nothing is answered for half a minute. Those who are at it are slow, which is told once: nobody comes in after them, so nothing else is
/// seen, and least of all that all is well.
#[test]
fn through_a_standstill() {
    let mut door = door(BAND.0, overload(3.0));
    door.run(30);
    let (stands, limit) = (door.now, door.limit());
    door.server.be_slower(f64::INFINITY);
    door.run(30);
    assert!(door.answers.iter().all(|one| one.at <= stands));
    is_within(&door, stands, (limit * 9 / 10, limit));
    door.server.be_slower(1.0);
    let healthy = door.now;
    door.run(LONG);
    goes_through(&door, healthy + time_from_below(), BAND);
}

/// Half of all requests fail, and fast. Nothing but the errors tells.
#[test]
fn through_errors() {
    let mut door = door(BAND.0, overload(3.0));
    door.run(30);
    door.load.fails = 2;
    door.run(30);
    // That none of ten fails happens once in a thousand rounds.
    is_within(&door, door.now - 10 * SECOND, (1, 2));
    door.load.fails = 0;
    let healthy = door.now;
    door.run(LONG);
    goes_through(&door, healthy + time_from_below(), BAND);
}

/// Three times as many come as can be served. Those who are let in are served as fast as the server can, and in time; all others know
/// soon. Without a gate the same server is as busy, and nobody has anything of it.
#[test]
fn under_three_times_the_load() {
    let (from, to) = (30 * SECOND, 60 * SECOND);
    for spread in [0.0, 0.5] {
        let mut door = door(20, Load { spread, ..overload(3.0) });
        door.run(60);
        // The latency is that of the middle; work of one and a half is as much longer, and one more than too many is in.
        let longest = (1.0 + spread) * (TOO_MANY * WORK / WORKERS) as f64;
        assert!(door.slowest_since(from) <= longest as u64 + MILLI, "{}", door.slowest_since(from));
        let good = door.answered(from, to, WAIT + longest as u64);
        assert!(good >= 0.9 * CAPACITY, "{good} of {CAPACITY} each second");
        let later = door.turned_away.iter().filter(|(at, _)| *at >= from).count();
        assert!(later > 0, "some are turned away");
    }
    let open = Gate::builder(1_000_000).places(0);
    let mut open = Door::new(open, WAIT, Server::new(WORKERS), overload(3.0));
    open.run(60);
    assert!(open.turned_away.is_empty());
    let good = open.answered(from, to, WAIT + 2 * LATENCY);
    assert!(good < 0.01 * CAPACITY, "{good} of {CAPACITY} each second");
}

/// None fail, or one in a hundred, or one in twenty-five, where one in twenty may. Ten times the server and the load, so that there are many
/// in a round: it needs 80 at once to be busy, and has them.
#[test]
fn with_fewer_errors_than_may_be() {
    for fails in [0, 100, 25] {
        let load = Load { spread: 0.2, fails, ..overload(30.0) };
        let mut door = Door::new(adaptive(10 * BAND.0), WAIT, Server::new(10 * WORKERS), load);
        door.run(60);
        let answered = door.answered(30 * SECOND, 60 * SECOND, WAIT + 2 * LATENCY);
        let part = answered / (10.0 * CAPACITY);
        let limits = door.limits_since(30 * SECOND);
        assert!(part >= 0.9, "1 in {fails} fails: {part:.2} of what it can, limits {limits:?}");
    }
}
