//! Whoever waits as long as told is let pass.

use std::thread;
use std::time::Duration;

use crate::scene::{Scene, ask, both};

/// Asked with these for so much until it is limited, waits as told, and asks once more.
fn waiting_is_enough(scene: &Scene, key: &str, numbers: &[i64]) {
    let mut connection = scene.connect();
    for round in 0..2 {
        let wait = (0..1000).find_map(|_| {
            let told = ask(&mut connection, key, numbers);
            (told[0] == 1).then_some(told[3])
        });
        let wait = wait.unwrap_or_else(|| panic!("{numbers:?} never limits"));
        assert!((1..=3).contains(&wait), "{numbers:?}: {wait} s");
        thread::sleep(Duration::from_secs(wait as u64));
        let told = ask(&mut connection, key, numbers);
        assert_eq!((told[0], told[3]), (0, -1), "{numbers:?} in round {round}: {told:?}");
    }
}

#[test]
fn waiting_as_told_is_enough() {
    // The last three: a wait of a second and a bit less than a millisecond, which redis-cell takes for one.
    let numbers: [&[i64]; 12] = [
        &[0, 1, 1],
        &[0, 1, 2],
        &[0, 2, 3],
        &[2, 3, 2, 3],
        &[6, 7, 1, 7],
        &[10, 11, 1, 5],
        &[12, 13, 2, 13],
        &[4, 1, 1, 2],
        &[1, 3, 5],
        &[0, 10_000, 10_009],
        &[0, 10_000_000, 10_000_001],
        &[9, 100_000, 100_090, 1],
    ];
    both(|scene| {
        thread::scope(|scope| {
            for numbers in numbers {
                scope.spawn(move || waiting_is_enough(scene, &format!("{numbers:?}"), numbers));
            }
        });
    });
}

/// A wait is for this quantity and these numbers.
#[test]
fn waiting_is_enough_after_other_numbers() {
    both(|scene| {
        thread::scope(|scope| {
            for count in [7, 11, 13] {
                scope.spawn(move || {
                    let mut connection = scene.connect();
                    let key = format!("{count}");
                    // Two seconds of it are used, and one second's worth of others is wanted.
                    ask(&mut connection, &key, &[2 * count - 1, count, 1, 2 * count]);
                    let told = ask(&mut connection, &key, &[2, 3, 2, 2]);
                    assert_eq!((told[0], told[3]), (1, 2), "{told:?}");
                    thread::sleep(Duration::from_secs(2));
                    let told = ask(&mut connection, &key, &[2, 3, 2, 2]);
                    assert_eq!(told[0], 0, "{told:?}");
                });
            }
        });
    });
}
