//! Each line of the table of what is wrong, word for word.

use crate::scene::{DAY, Scene, ask, both, refused};

const USAGE: &str = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

/// A hundred years, at least and at most.
const CENTURY: [i64; 2] = [36_500 * DAY, 36_525 * DAY];

/// The error, with these after the name.
#[track_caller]
fn error(scene: &Scene, arguments: &[&str]) -> String {
    refused(&mut scene.connect(), &[&["CL.THROTTLE"], arguments].concat())
}

#[test]
fn too_few_or_too_many_arguments() {
    both(|scene| {
        let all = ["k", "15", "30", "60", "1", "1", "1"];
        for count in [0, 1, 2, 3, 6, 7] {
            assert_eq!(error(scene, &all[..count]), USAGE, "{count}");
        }
        let many = ["1"; 100];
        assert_eq!(error(scene, &many), USAGE);
        // The usage comes before what the arguments are.
        assert_eq!(error(scene, &["k", "abc", "0"]), USAGE);
        for name in ["cl.throttle", "Cl.Throttle"] {
            assert_eq!(refused(&mut scene.connect(), &[name, "k"]), USAGE, "{name}");
        }
    });
}

#[test]
fn what_is_no_number() {
    both(|scene| {
        for wrong in [
            "abc",
            "",
            " ",
            " 5",
            "5 ",
            "5.0",
            "5e3",
            "0x10",
            "1_000",
            "1,000",
            "+",
            "-",
            "--5",
            "+-5",
            "NaN",
            "inf",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999999999999999999999999",
            "٣",
        ] {
            let expected = format!("Cell error: Store error: Couldn't parse as integer: {wrong}");
            for place in 1..5 {
                let mut arguments = ["k", "15", "30", "60", "1"];
                arguments[place] = wrong;
                assert_eq!(error(scene, &arguments), expected, "{wrong:?} at {place}");
            }
        }
    });
}

/// It is told again in a line, which must stay one line.
#[test]
fn what_is_no_number_cannot_forge_an_answer() {
    let scene = Scene::start(&[]);
    for wrong in [&b"5\r\n+OK"[..], b"5\n", b"\r\n:1\r\n", b"\xff\xfe", b"\0", b"1\r"] {
        let told = refused(&mut scene.connect(), &[&b"CL.THROTTLE"[..], b"k", wrong, b"30", b"60"]);
        assert!(
            told.starts_with("Cell error: Store error: Couldn't parse as integer: "),
            "{wrong:?}: {told:?}"
        );
    }
    let long = "9".repeat(60_000);
    let told = error(&scene, &["k", &long, "30", "60"]);
    assert!(
        told.starts_with("Cell error: Store error: Couldn't parse as integer: 9999"),
        "{} bytes",
        told.len()
    );
}

#[test]
fn numbers_as_redis_cell_reads_them() {
    both(|scene| {
        for (nth, [burst, count, period, quantity]) in [
            ["+9", "1", "86400", "1"],
            ["009", "1", "86400", "1"],
            ["9", "+1", "086400", "0001"],
            ["+09", "+01", "+0086400", "+001"],
            ["00000000000000000000000000000000009", "1", "86400", "1"],
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("k{nth}");
            let words = ["CL.THROTTLE", &key, burst, count, period, quantity];
            let told = crate::scene::told(&scene.connect().command(&words).unwrap());
            assert_eq!(told, [0, 10, 9, -1, DAY], "{words:?}");
        }
        let words = ["CL.THROTTLE", "look", "-0", "1", "86400", "-0"];
        let told = crate::scene::told(&scene.connect().command(&words).unwrap());
        assert_eq!(told, [0, 1, 1, -1, 0]);
    });
}

#[test]
fn rates_of_zero() {
    const ZERO: &str = "Cell error: Store error: Zero rates are not supported";
    both(|scene| {
        for arguments in [
            ["k", "15", "0", "60", "1"],
            ["k", "15", "30", "0", "1"],
            ["k", "15", "0", "0", "1"],
            ["k", "0", "0", "0", "0"],
            ["k", "15", "-0", "60", "1"],
        ] {
            assert_eq!(error(scene, &arguments), ZERO, "{arguments:?}");
        }
        assert_eq!(error(scene, &["k", "10", "0", "0"]), ZERO);
    });
}

#[test]
fn numbers_below_zero() {
    both(|scene| {
        for (place, name) in [(1, "max_burst"), (2, "count"), (3, "period"), (4, "quantity")] {
            for wrong in ["-1", "-30", "-9223372036854775808"] {
                let mut arguments = ["k", "15", "30", "60", "1"];
                arguments[place] = wrong;
                let expected = format!("Cell error: Store error: {name} must not be negative");
                assert_eq!(error(scene, &arguments), expected, "{arguments:?}");
            }
        }
        // Nothing was given to anybody.
        assert_eq!(ask(&mut scene.connect(), "k", &[15, 30, 60, 0]), [0, 16, 16, -1, 0]);
    });
}

#[test]
fn periods_of_more_than_a_century() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    let [least, most] = CENTURY;
    assert_eq!(ask(&mut connection, "a", &[0, 1, least]), [0, 1, 0, -1, least]);
    assert_eq!(ask(&mut connection, "b", &[0, 2, 2 * least]), [0, 1, 0, -1, least]);
    // In lowest terms it is not as long as it looks.
    assert_eq!(ask(&mut connection, "c", &[0, 1000, 1000 * DAY]), [0, 1, 0, -1, DAY]);
    assert_eq!(ask(&mut connection, "d", &[0, i64::MAX, i64::MAX]), [0, 1, 0, -1, 1]);
    for [count, period] in [[1, most + 1], [1, i64::MAX], [2, 2 * most + 2], [3, 3 * most + 1]] {
        let [count, period] = [count, period].map(|number: i64| number.to_string());
        let told = error(&scene, &["k", "0", &count, &period]);
        assert_eq!(
            told, "Cell error: Store error: period is more than 100 years",
            "{count} in {period}"
        );
    }
}

#[test]
fn keys_that_are_too_long() {
    both(|scene| {
        for length in [1025, 2000, 60_000] {
            let told = error(scene, &[&"k".repeat(length), "15", "30", "60"]);
            assert_eq!(told, "Cell error: Store error: a key has at most 1024 bytes", "{length}");
        }
        let told = ask(&mut scene.connect(), "k".repeat(1024), &[15, 30, 60]);
        assert_eq!(told, [0, 16, 15, -1, 2]);
    });
}

#[test]
fn numbers_that_redis_cannot_count_exactly() {
    let redis = dashpot_testkit::RedisServer::start();
    let scene = Scene::on(&redis);
    for arguments in [
        ["k", "9223372036854775807", "1", "86400"],
        ["k", "9007199254740992", "1", "86400"],
        // It takes far more than a century to come back.
        ["k", "1000000", "1", "86400000"],
    ] {
        let told = error(&scene, &arguments);
        let why =
            told.strip_prefix("Cell error: Store error: ").unwrap_or_else(|| panic!("{told}"));
        assert!(!why.trim().is_empty() && !why.contains("panic"), "{arguments:?}: {told}");
    }
    // Nothing was counted, and what can be counted is.
    assert_eq!(ask(&mut scene.connect(), "k", &[15, 30, 60]), [0, 16, 15, -1, 2]);
}
