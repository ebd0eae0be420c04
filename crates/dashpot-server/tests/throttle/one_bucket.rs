//! A key is one bucket, whatever numbers it is asked about with: what stays is when it will be full again.

use dashpot_testkit::RedisServer;

use crate::model::Model;
use crate::scene::{DAY, Scene, ask, both};

/// In memory and on Redis, held to the model of each.
fn both_by_model(case: impl Fn(&Scene, Model)) {
    println!("in memory");
    case(&Scene::start(&[]), Model::in_memory());
    println!("on Redis");
    let redis = RedisServer::start();
    case(&Scene::on(&redis), Model::on_redis());
}

#[test]
fn a_faster_rate_does_not_open_what_a_slower_one_closed() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[0, 1, 60]), [0, 1, 0, -1, 60]);
        assert_eq!(ask(&mut connection, "k", &[0, 1, 1]), [1, 1, 0, 60, 60]);
        assert_eq!(ask(&mut connection, "k", &[0, 1000, 1]), [1, 1, 0, 60, 60]);
        // A minute at a thousand a second is sixty thousand: of one more second, all is left, and what came back.
        let told = ask(&mut connection, "k", &[60_999, 1000, 1, 1]);
        assert_eq!((told[0], told[1]), (0, 61_000), "{told:?}");
        assert!((999..2000).contains(&told[2]) && (60..=61).contains(&told[4]), "{told:?}");
    });
}

#[test]
fn a_slower_rate_makes_little_of_what_a_faster_one_took() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[99, 100, 1, 100]), [0, 100, 0, -1, 1]);
        // That was a second's worth: a hundredth of a bucket of a minute and forty seconds, not yet one of it.
        let told = ask(&mut connection, "k", &[99, 1, 1]);
        assert_eq!((told[0], told[1], told[4]), (0, 100, 2), "{told:?}");
        assert_eq!(told[2], 98);
    });
}

#[test]
fn another_burst_leaves_what_was_used() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 3]), [0, 3, 0, -1, 3 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[9, 1, DAY]), [0, 10, 6, -1, 4 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[3, 1, DAY]), [1, 4, 0, DAY, 4 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[0, 1, DAY]), [1, 1, 0, 4 * DAY, 4 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[0, 1, DAY, 0]), [1, 1, 0, 3 * DAY, 4 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[0, 1, DAY, 2]), [1, 1, 0, -1, 4 * DAY]);
        assert_eq!(ask(&mut connection, "k", &[4, 1, DAY]), [0, 5, 0, -1, 5 * DAY]);
    });
}

#[test]
fn another_period_keeps_the_time() {
    both(|scene| {
        let mut connection = scene.connect();
        assert_eq!(ask(&mut connection, "k", &[9, 1, DAY, 2]), [0, 10, 8, -1, 2 * DAY]);
        // Two days are 48 hours, and one more.
        assert_eq!(ask(&mut connection, "k", &[99, 24, DAY]), [0, 100, 51, -1, 49 * 3600]);
        // Which is a little more than a third of a week.
        let looked = ask(&mut connection, "k", &[0, 1, 7 * DAY, 0]);
        assert_eq!(looked, [0, 1, 0, -1, 49 * 3600]);
        let told = ask(&mut connection, "k", &[1, 1, 7 * DAY]);
        assert_eq!(told, [0, 2, 0, -1, 7 * DAY + 49 * 3600]);
    });
}

/// The same rate in other words is the same rate.
#[test]
fn terms_do_not_matter() {
    both(|scene| {
        let mut connection = scene.connect();
        for (nth, factor) in [1, 2, 3, 7, 1000, 1_000_000].into_iter().enumerate() {
            let told = ask(&mut connection, "k", &[9, factor, factor * DAY]);
            let used = nth as i64 + 1;
            assert_eq!(told, [0, 10, 10 - used, -1, used * DAY], "{factor}");
        }
    });
}

/// Intervals that are no whole number of nanoseconds, over and over: nothing is lost and nothing gained. A million seconds
/// at a time, so that as little as a part of a nanosecond would show.
#[test]
fn rates_that_do_not_come_out_even() {
    both_by_model(|scene, mut model| {
        let mut connection = scene.connect();
        const MILLION: i64 = 1_000_000;
        let mut seconds = 0;
        for round in 0..4 {
            for count in [7, 11, 13] {
                // All that there is at this rate in so many seconds and a million more.
                seconds += MILLION;
                let numbers = [seconds * count - 1, count, 1, MILLION * count];
                let told = model.ask(&mut connection, "k", &numbers);
                assert_eq!(told[0], 0, "{round}: {numbers:?} {told:?}");
                // And the others agree that no more is left than what came back meanwhile.
                for other in [7, 11, 13] {
                    for quantity in [0, 1, 20 * other] {
                        let numbers = [seconds * other - 1, other, 1, quantity];
                        let told = model.ask(&mut connection, "k", &numbers);
                        let limited = i64::from(quantity > 1);
                        assert!(quantity == 1 || told[0] == limited, "{numbers:?} {told:?}");
                    }
                }
            }
        }
    });
}

/// One at a time, from one rate to the next: rounding, if there is any, must not add up to anything.
#[test]
fn many_small_steps_at_changing_rates() {
    both_by_model(|scene, mut model| {
        let mut connection = scene.connect();
        let begun = std::time::Instant::now();
        for nth in 0..1001 {
            let count = [7, 11, 13][nth % 3];
            let told = model.ask(&mut connection, "k", &[count * 1000 - 1, count, 1]);
            assert_eq!(told[0], 0);
        }
        // 334 of a seventh of a second, 334 of an eleventh, 333 of a thirteenth: 103.69 seconds, less what came back
        // in the meantime.
        let passed = begun.elapsed().as_secs() as i64 + 1;
        let reset = model.ask(&mut connection, "k", &[999, 1, 1, 0])[4];
        assert!((104 - passed..=104).contains(&reset), "{reset} after {passed} s");
    });
}

/// On Redis a key ends by itself, and not before what it holds does not matter any more, whatever it was last asked with.
#[test]
fn on_redis_it_is_there_as_long_as_it_matters() {
    let redis = RedisServer::start();
    let scene = Scene::on(&redis);
    let mut connection = scene.connect();
    for numbers in [
        &[9, 1, DAY, 3][..],
        &[9, 1, DAY, 0],
        &[0, 1, 1],
        &[0, 1000, 1, 0],
        &[0, 1000, 1, 7],
        &[999_999, 1, 1, 1],
        &[99, 100, DAY, 1],
        &[99, 1, DAY, 2],
    ] {
        let told = ask(&mut connection, "k", numbers);
        let key = redis.keys().into_iter().find(|key| key.windows(3).any(|three| three == b"{k}"));
        let left = redis.command(&[b"PTTL", key.unwrap().as_slice()]).int();
        let least = (told[4] - 2) * 1000;
        assert!(left >= least, "{left} ms left after {numbers:?}: {told:?}");
    }
    assert_eq!(redis.keys_without_ttl(), [b""; 0]);
}
