//! A server with a faked clock tells the time it is told, to the microsecond.

use std::time::{Duration, Instant};

use dashpot_testkit::FakedRedis;
use dashpot_testkit::redis::{RedisServer, Reply};

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 31_556_952 * SECOND;
/// The Sunday this was written.
const NOW: u64 = 1_794_744_000 * SECOND;

fn micros(reply: &Reply) -> u64 {
    let [seconds, micros] = reply.array() else { panic!("{reply:?}") };
    seconds.int() as u64 * 1_000_000 + micros.int() as u64
}

/// Waits until the server has swept the keys away by itself.
fn await_keys(server: &RedisServer, keys: i64) {
    let start = Instant::now();
    // DBSIZE does not look whether keys are expired.
    while server.command(&["DBSIZE"]).int() != keys {
        assert!(start.elapsed() < Duration::from_secs(5), "they are not swept");
        std::thread::yield_now();
    }
}

#[test]
fn it_tells_exactly_the_time_it_is_told() {
    let server = FakedRedis::start(NOW);
    assert_eq!(micros(&server.command(&["TIME"])), NOW / 1000);

    // Dates from 1971 to 2200, in no order: the golden ratio jumps about evenly.
    let (start, rounds) = (Instant::now(), 2000_u32);
    for round in 0..u64::from(rounds) {
        let fraction = round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let nanos = YEAR + ((u128::from(fraction) * u128::from(229 * YEAR)) >> 64) as u64;
        server.set_time(nanos);
        assert_eq!(micros(&server.command(&["TIME"])), nanos / 1000, "{nanos}");
    }
    println!("{:?} for one date", start.elapsed() / rounds);

    // The smallest steps, over the end of a second and back.
    for micros_now in (NOW / 1000 - 50..NOW / 1000 + 50).chain((0..100).map(|i| NOW / 1000 - i)) {
        for nanos in [0, 999] {
            server.set_time(micros_now * 1000 + nanos);
            assert_eq!(micros(&server.command(&["TIME"])), micros_now);
        }
    }
}

#[test]
fn scripts_go_by_it_too() {
    let server = FakedRedis::start(NOW);
    for nanos in [NOW + 1000, NOW + 5 * YEAR, NOW - 5 * YEAR, NOW - 1000] {
        server.set_time(nanos);
        let told = server.command(&["EVAL", "return redis.call('TIME')", "0"]);
        assert_eq!(micros(&told), nanos / 1000);
    }
}

#[test]
fn it_stands_still() {
    let server = FakedRedis::start(NOW);
    server.command(&["SET", "a", "1", "PX", "1"]);
    // Redis's own rounds go on meanwhile.
    await_rounds(&server);
    assert_eq!(micros(&server.command(&["TIME"])), NOW / 1000);
    assert_eq!(server.command(&["PTTL", "a"]).int(), 1);
}

/// Waits for two of the rounds in which Redis sweeps, ten a second.
fn await_rounds(server: &RedisServer) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(250) {
        server.command(&["PING"]);
    }
}

#[test]
fn keys_expire_by_it() {
    for far in [NOW, YEAR, 230 * YEAR] {
        // Nobody sweeps: only who asks for a key finds that it is gone.
        let server = FakedRedis::with(far, &["--enable-debug-command", "yes"]);
        assert!(server.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).is_ok());
        server.command(&["SET", "a", "1", "PX", "1500"]);
        server.set_time(far + 1499 * 1_000_000 + 999_999);
        assert_eq!(server.command(&["PTTL", "a"]).int(), 1);
        assert_eq!(server.command(&["GET", "a"]).text(), "1");
        // It lives through the millisecond it expires at.
        server.set_time(far + 1500 * 1_000_000 + 999_999);
        assert_eq!(server.command(&["PTTL", "a"]).int(), 0);
        assert_eq!(server.command(&["GET", "a"]).text(), "1");
        let expired = "return redis.call('GET', 'a')";
        server.set_time(far + 1501 * 1_000_000);
        assert_eq!(server.command(&["DBSIZE"]).int(), 1);
        assert_eq!(server.command(&["EVAL", expired, "0"]), Reply::Nil);
        assert_eq!(server.command(&["GET", "a"]), Reply::Nil);
        assert_eq!(server.command(&["DBSIZE"]).int(), 0);
    }
}

#[test]
fn keys_are_swept_by_it() {
    let server = FakedRedis::start(NOW);
    let fill = "for i = 1, 1000 do redis.call('SET', i, i, 'PX', ARGV[1]) end";
    server.command(&["EVAL", fill, "0", "60000"]);
    await_rounds(&server);
    assert_eq!(server.command(&["DBSIZE"]).int(), 1000);
    server.set_time(NOW + 61 * SECOND);
    await_keys(&server, 0);

    // After the clock went back as well.
    server.set_time(NOW - 10 * YEAR);
    server.command(&["EVAL", fill, "0", "1000"]);
    await_rounds(&server);
    assert_eq!(server.command(&["DBSIZE"]).int(), 1000);
    server.set_time(NOW - 10 * YEAR + 2 * SECOND);
    await_keys(&server, 0);
}

#[test]
fn it_is_the_same_after_a_restart() {
    let server = FakedRedis::with(NOW, &["--maxmemory", "2mb"]);
    server.set_time(NOW + YEAR);
    server.restart();
    assert_eq!(micros(&server.command(&["TIME"])), (NOW + YEAR) / 1000);
    server.set_time(NOW);
    assert_eq!(micros(&server.command(&["TIME"])), NOW / 1000);
    assert_eq!(server.info("maxmemory"), "2097152");
}
