//! Files that are not as they were written, or something else: told, and left alone.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use dashpot::{
    Limiter, ManualClock, MemoryStore, Policy, Quota, StateError, StateKeeper, Timestamp,
};

use super::scratch::Scratch;

/// A small file with something of everything in it.
fn saved(scratch: &Scratch) -> Vec<u8> {
    let store = Arc::new(MemoryStore::with_clock(ManualClock::new(Timestamp::from_secs(1000))));
    for (name, text) in [("a", "3/min"), ("b", "7/s burst 9")] {
        let policy = Policy::new(name, text.parse().unwrap()).unwrap();
        let limiter = Limiter::on(policy, store.clone());
        for key in ["x", "y"] {
            assert!(limiter.check_n(key, 2).is_allowed());
        }
        limiter.block("z", Duration::from_secs(10));
    }
    store.save(scratch.file()).unwrap();
    fs::read(scratch.file()).unwrap()
}

/// What is said of a file with this in it, which is then still as it was.
fn refused(scratch: &Scratch, content: &[u8]) -> StateError {
    fs::write(scratch.file(), content).unwrap();
    let error = MemoryStore::builder().build_from(scratch.file()).expect_err("it is not right");
    assert_eq!(fs::read(scratch.file()).unwrap(), content, "it was left alone");
    assert!(error.to_string().contains("dashpot.state"), "{error}");
    error
}

#[test]
fn a_bit_that_flipped_is_noticed_wherever_it_is() {
    let scratch = Scratch::new();
    let whole = saved(&scratch);
    for (byte, bit) in (0..whole.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << bit;
        let error = refused(&scratch, &damaged);
        match byte {
            0..8 => assert!(matches!(error, StateError::Foreign { .. }), "{byte}: {error}"),
            8..12 => assert!(
                matches!(error, StateError::Newer { .. } | StateError::Damaged { .. }),
                "{byte}: {error}"
            ),
            _ => assert!(matches!(error, StateError::Damaged { .. }), "{byte}: {error}"),
        }
    }
}

#[test]
fn a_file_that_ends_too_soon_or_too_late_is_noticed() {
    let scratch = Scratch::new();
    let whole = saved(&scratch);
    for length in 0..whole.len() {
        let error = refused(&scratch, &whole[..length]);
        assert_eq!(matches!(error, StateError::Foreign { .. }), length < 8, "{length}: {error}");
    }
    let longer = [&whole[..], b"x"].concat();
    assert!(matches!(refused(&scratch, &longer), StateError::Damaged { .. }));
}

#[test]
fn lengths_made_up_take_no_memory() {
    let scratch = Scratch::new();
    let whole = saved(&scratch);
    // The number of tables, of definitions, the length of the first name: as large as they get.
    for (at, length) in [(28, 4), (32, 2), (34, 2)] {
        let mut damaged = whole.clone();
        damaged[at..at + length].fill(0xff);
        assert!(matches!(refused(&scratch, &damaged), StateError::Damaged { .. }));
    }
}

#[test]
fn something_else_is_not_written_over() {
    let scratch = Scratch::new();
    let newer = [b"dashpot\x1a", &3_u32.to_le_bytes()[..], b"whatever it will be"].concat();
    for content in [&b"root:x:0:0:root:/root:/bin/bash\n"[..], b"", &newer] {
        let error = refused(&scratch, content);
        let told =
            matches!(error, StateError::Foreign { .. } | StateError::Newer { version: 3, .. });
        assert!(told, "{error}");
        let error = MemoryStore::new().save(scratch.file()).expect_err("it belongs to others");
        let told =
            matches!(error, StateError::Foreign { .. } | StateError::Newer { version: 3, .. });
        assert!(told, "{error}");
        let store = Arc::new(MemoryStore::new());
        let kept = StateKeeper::start(store, scratch.file(), Duration::from_secs(1), |_| ());
        assert!(kept.is_err());
        assert_eq!(fs::read(scratch.file()).unwrap(), content);
    }
    assert_eq!(scratch.names(), ["dashpot.state"]);
}

/// Whoever was killed while writing leaves a beginning beside the file. It is in nobody's way.
#[test]
fn a_beginning_that_was_left_is_cleared_away() {
    let scratch = Scratch::new();
    let whole = saved(&scratch);
    let left = scratch.file().with_file_name("dashpot.state.123-0.new");
    fs::write(&left, &whole[..20]).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&left).unwrap().set_modified(long_ago).unwrap();
    MemoryStore::builder().build_from(scratch.file()).unwrap().save(scratch.file()).unwrap();
    assert_eq!(scratch.names(), ["dashpot.state"]);
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let scratch = Scratch::new();
    let nowhere = scratch.file().join("below").join("a.state");
    let error = MemoryStore::new().save(&nowhere).expect_err("there is no such directory");
    assert!(matches!(error, StateError::Write { .. } | StateError::Read { .. }), "{error}");
}

/// A keeper that cannot save says so, keeps trying, and succeeds when it can.
#[test]
fn a_keeper_tells_what_went_wrong_and_goes_on() {
    let scratch = Scratch::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let (report, path) = (told.clone(), scratch.file());
    let store = Arc::new(MemoryStore::new());
    let limiter = Limiter::on(Policy::new("p", Quota::per_day(3)).unwrap(), store.clone());
    let every = Duration::from_millis(1);
    let keeper = StateKeeper::start(store, &path, every, move |error| {
        report.lock().unwrap().push(error.to_string());
    })
    .unwrap();
    // Something else has taken its place: a directory, which nothing can be moved over.
    fs::remove_file(&path).unwrap();
    while fs::create_dir(&path).is_err() {
        let _ = fs::remove_file(&path);
    }
    let patience = Instant::now();
    while told.lock().unwrap().is_empty() {
        assert!(patience.elapsed() < Duration::from_secs(20), "it is told soon");
    }
    fs::remove_dir(&path).unwrap();
    assert!(limiter.check("k").is_allowed());
    keeper.close().unwrap();
    let restored = MemoryStore::builder().build_from(&path).unwrap();
    assert_eq!(restored.len(), 1);
}

/// Two who save one store at once do not get in each other's way.
#[test]
fn saving_twice_at_once_is_saving_twice() {
    let scratch = Scratch::new();
    let store = MemoryStore::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope
                .spawn(|| (0..20).for_each(|_| assert_eq!(store.save(scratch.file()).unwrap(), 0)));
        }
    });
    assert_eq!(scratch.names(), ["dashpot.state"]);
}
