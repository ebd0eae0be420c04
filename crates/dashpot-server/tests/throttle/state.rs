//! What was counted over RESP outlives the process, as everything else does.

use std::fs;
use std::time::Duration;

use crate::scene::{DAY, Scene, ask};
use crate::service::{Directory, until};

const ARGUMENTS: [&str; 4] = ["--state-every", "1h", "--drain-delay", "0s"];

#[test]
fn counts_outlive_a_stop() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = [&["--state-file", &file], &ARGUMENTS[..]].concat();
    let first = Scene::start(&arguments);
    let mut connection = first.connect();
    assert_eq!(ask(&mut connection, "a", &[9, 1, DAY, 4]), [0, 10, 6, -1, 4 * DAY]);
    assert_eq!(ask(&mut connection, b"\xff\0", &[0, 1, DAY]), [0, 1, 0, -1, DAY]);
    assert_eq!(ask(&mut connection, "", &[2, 1, DAY, 3]), [0, 3, 0, -1, 3 * DAY]);
    // Four days' worth, at a rate that is no whole number of nanoseconds.
    let weeks = 4 * DAY * 7;
    assert_eq!(ask(&mut connection, "b", &[weeks - 1, 7, 1, weeks])[..3], [0, weeks, 0]);
    drop(connection);
    first.service.stop();
    let second = Scene::start(&arguments);
    let mut connection = second.connect();
    // Nobody knows how long it was away, but that it was not a day.
    let told = ask(&mut connection, "a", &[9, 1, DAY, 0]);
    assert_eq!(told[..4], [0, 10, 6, -1]);
    assert!((4 * DAY - 60..=4 * DAY).contains(&told[4]), "{told:?}");
    assert_eq!(ask(&mut connection, "a", &[9, 1, DAY, 7])[0], 1);
    assert_eq!(ask(&mut connection, b"\xff\0", &[0, 1, DAY])[0], 1);
    assert_eq!(ask(&mut connection, "", &[2, 1, DAY])[0], 1);
    // And at another rate than before.
    let told = ask(&mut connection, "b", &[9, 1, DAY, 0]);
    assert_eq!(told[..4], [0, 10, 6, -1], "{told:?}");
    assert_eq!(ask(&mut connection, "new", &[9, 1, DAY, 10])[0], 0);
}

#[test]
fn counts_outlive_a_crash_up_to_what_was_saved() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--state-every", "100ms"];
    let first = Scene::start(&arguments);
    assert_eq!(ask(&mut first.connect(), "a", &[99, 1, DAY, 30])[2], 70);
    // The second save from now began after that.
    for _ in 0..2 {
        let written = || fs::metadata(&file).ok()?.modified().ok();
        let before = written();
        until("counts to be saved", Duration::from_secs(10), || {
            written().filter(|now| Some(*now) != before)
        });
    }
    first.service.crash();
    let second = Scene::start(&arguments);
    assert_eq!(ask(&mut second.connect(), "a", &[99, 1, DAY, 0])[2], 70);
}

/// Two doors keep their counts in one file, and apart.
#[test]
fn counts_of_other_doors_stay_theirs() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = [&["--state-file", &file], &ARGUMENTS[..]].concat();
    let first = Scene::start(&arguments);
    let asked = r#"{"key":"a","limit":"10/day","algorithm":"fixed-window","cost":3}"#;
    assert_eq!(first.service.client().check(asked).remaining(), 7);
    assert_eq!(ask(&mut first.connect(), "a", &[9, 10, DAY, 5])[2], 5);
    first.service.stop();
    let second = Scene::start(&arguments);
    let looked = asked.replace(":3", ":0");
    assert_eq!(second.service.client().check(&looked).remaining(), 7);
    assert_eq!(ask(&mut second.connect(), "a", &[9, 10, DAY, 0])[2], 5);
}
