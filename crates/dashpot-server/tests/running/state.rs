//! Counts that outlive the process.

use std::fs;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::service::{Directory, Service, refusal, until};

const ASKED: &str = r#"{"key":"alice","limit":"1000/day"}"#;
const LOOKED: &str = r#"{"key":"alice","limit":"1000/day","algorithm":"fixed-window","cost":0}"#;
const COUNTED: &str = r#"{"key":"alice","limit":"1000/day","algorithm":"fixed-window"}"#;

fn written(file: &str) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

/// Until what is counted now has been saved: the second save from now began after that.
fn until_saved(file: &str) {
    for _ in 0..2 {
        let before = written(file);
        until("counts to be saved", Duration::from_secs(10), || {
            written(file).filter(|now| Some(*now) != before)
        });
    }
}

#[test]
fn counts_outlive_a_stop_exactly() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--state-every", "1h", "--drain-delay", "0s"];
    let service = Service::start(&arguments);
    let mut client = service.client();
    for _ in 0..123 {
        assert!(client.check(ASKED).allowed());
        assert!(client.check(COUNTED).allowed());
    }
    let blocked = r#"{"key":"bob","limit":"5/day","for":"1h"}"#;
    assert_eq!(client.post("/v1/keys/block", blocked).status, 200);
    service.stop();
    let service = Service::start(&arguments);
    let mut client = service.client();
    assert_eq!(client.check(LOOKED).remaining(), 877);
    // A bucket of a thousand a day fills by one in 86 seconds.
    let left = client.check(ASKED).remaining();
    assert!((876..=877).contains(&left), "{left}");
    assert!(!client.check(r#"{"key":"bob","limit":"5/day"}"#).allowed(), "a block stays");
}

#[test]
fn counts_outlive_a_stop_by_the_rule_file() {
    let home = Directory::new();
    let rules = "[memory]\nstate_file = 'kept'\n[[rule]]\nname = 'all'\nlimits = ['9/day']\n\
                 algorithm = 'fixed-window'\n";
    let arguments = ["--drain-delay", "0s"];
    let service = Service::with_rules(&home, rules, &arguments);
    for _ in 0..4 {
        assert!(service.client().check(r#"{"request":{"path":"/"}}"#).allowed());
    }
    service.stop();
    assert!(home.path().join("kept").is_file(), "beside the rule file");
    let service = Service::with_rules(&home, rules, &arguments);
    let answer = service.client().check(r#"{"request":{"path":"/"}}"#);
    assert_eq!(answer.remaining(), 4, "{answer:?}");
}

#[test]
fn counts_outlive_a_crash_up_to_what_was_saved() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--state-every", "200ms"];
    let service = Service::start(&arguments);
    let mut client = service.client();
    for _ in 0..50 {
        assert!(client.check(COUNTED).allowed());
    }
    until_saved(&file);
    service.crash();
    let service = Service::start(&arguments);
    assert_eq!(service.client().check(LOOKED).remaining(), 950);
}

/// With kills at any time, what is granted beyond a limit is what was granted since the last save.
#[test]
fn over_ten_crashes_no_more_is_granted_than_was_not_saved() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--state-every", "200ms"];
    let asked = r#"{"key":"alice","limit":"100/day","algorithm":"fixed-window"}"#;
    let (mut granted, mut unsaved) = (0, 0);
    for round in 0..10 {
        let service = Service::start(&arguments);
        let mut client = service.client();
        let mut ask = |times| (0..times).filter(|_| client.check(asked).allowed()).count();
        let saved = ask(12);
        until_saved(&file);
        // Those that come now may be lost with it, and no others.
        let lost = ask(3);
        service.crash();
        granted += saved + lost;
        unsaved += lost;
        assert!(granted <= 100 + unsaved, "round {round}: {granted} granted, {unsaved} not saved");
    }
    println!("{granted} granted, {unsaved} of them not surely saved");
    let service = Service::start(&arguments);
    let rest = (0..200).filter(|_| service.client().check(asked).allowed()).count();
    assert!(granted + rest <= 100 + unsaved, "{granted} and {rest} more");
    assert!(granted + rest >= 100, "{granted} and {rest} more: something was counted twice");
    assert!(!service.client().check(asked).allowed());
}

/// It is killed while it saves, more likely than not. What is there then is the last state or the one before.
#[test]
fn a_crash_while_saving_leaves_a_state_that_can_be_read() {
    let home = Directory::new();
    let file = home.file("state");
    let arguments = ["--state-file", &file, "--state-every", "1ms"];
    let mut left = 1000;
    for round in 0..8 {
        // It would not start with a state that is not whole.
        let service = Service::start(&arguments);
        let mut client = service.client();
        let looked = client.check(LOOKED).remaining();
        assert!(looked <= left, "round {round}: {looked} left where {left} had been saved");
        for nth in 0..400 {
            let key = format!(r#"{{"key":"{round}-{nth}","limit":"10/day"}}"#);
            assert!(client.check(&key).allowed());
        }
        left = client.check(COUNTED).remaining();
        until_saved(&file);
        thread::sleep(Duration::from_micros(300 * round));
        service.crash();
    }
    // What was begun and not ended does not pile up.
    let names: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(names.len() <= 3, "{names:?}");
}

#[test]
fn a_file_that_is_no_state_is_told_and_left_alone() {
    let home = Directory::new();
    let good = home.file("good");
    let service = Service::start(&["--state-file", &good, "--drain-delay", "0s"]);
    for nth in 0..100 {
        let asked = format!(r#"{{"key":"key-{nth}","limit":"10/day"}}"#);
        assert!(service.client().check(&asked).allowed());
    }
    service.stop();
    let good = fs::read(good).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cases: [(&str, &[u8]); 4] = [
        ("no state at all", b"these are my notes, and not a state of anything\n"),
        ("cut short", &good[..good.len() / 2]),
        ("a bit that is another", &flipped),
        ("with more at its end", &[good.as_slice(), b"more"].concat()),
    ];
    for (what, bytes) in cases {
        let file = home.file("state");
        fs::write(&file, bytes).unwrap();
        let (code, told) =
            refusal(home.path(), &["--listen", "127.0.0.1:0", "--state-file", &file]);
        assert_eq!(code, Some(2), "{what}: {told}");
        assert!(told.contains(&file), "{what}: {told}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "{what}: left as it is");
    }
    // But for what keeps others off it.
    let names: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");
}

#[test]
fn a_place_that_cannot_be_written_to_is_told() {
    let home = Directory::new();
    // Nobody writes there, whoever they are.
    for place in ["/proc/dashpot.state", "missing/state"] {
        let (code, told) =
            refusal(home.path(), &["--listen", "127.0.0.1:0", "--state-file", place]);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(place), "{told}");
    }
}

/// A disk that goes away while it runs costs what would have been saved, and nobody an answer.
#[test]
fn a_place_that_goes_away_is_told_and_it_goes_on() {
    let home = Directory::new();
    let place = home.path().join("place");
    fs::create_dir(&place).unwrap();
    let file = home.file("place/state");
    let arguments = ["--state-file", &file, "--state-every", "100ms"];
    let service = Service::start(&arguments);
    assert!(service.client().check(ASKED).allowed());
    until_saved(&file);
    // In one step, since it may be writing there.
    fs::rename(&place, home.path().join("away")).unwrap();
    assert!(service.client().check(ASKED).allowed());
    until("it to be told", Duration::from_secs(10), || {
        service.log().contains("state").then_some(())
    });
    assert!(service.client().check(ASKED).allowed());
    fs::create_dir(&place).unwrap();
    until("it to be saved again", Duration::from_secs(10), || written(&file));
}
