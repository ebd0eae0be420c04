#![no_main]

//! The file of state. The input is what follows its head; its sum is added, or nothing would be read beyond it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dashpot::{Check, ManualClock, MemoryStore, Policy, StateError, Timestamp};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

/// Magic, version, seed and the mark of a known key.
const HEAD: usize = 28;

/// In memory where there is such a place: it is written for each input.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    place.join(format!("dashpot-fuzz-{}.state", std::process::id()))
});

/// How files of this process begin.
static BEGIN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    store_at(1000).save(&*FILE).expect("there is room");
    fs::read(&*FILE).expect("it was just written")[..HEAD].to_vec()
});

fn clock(secs: u64) -> ManualClock {
    ManualClock::new(Timestamp::from_secs(secs))
}

fn store_at(secs: u64) -> MemoryStore {
    MemoryStore::with_clock(clock(secs))
}

fuzz_target!(|data: &[u8]| {
    let begun = [&**BEGIN, data].concat();
    // Somebody else's file, and one that lost its end.
    assert!(read(data, 1000).is_err());
    assert!(read(&begun, 1000).is_err() || data.ends_with(&sum(&begun[..begun.len() - 8])));
    let whole = [&*begun, &sum(&begun)].concat();
    if let Ok(store) = read(&whole, 1000) {
        works(&store);
        let kept = store.save(&*FILE).expect("what was read can be written");
        let written = fs::read(&*FILE).expect("it was just written");
        let again = read(&written, 1000).expect("what was written can be read");
        assert_eq!(again.save(&*FILE).ok(), Some(kept));
        // Long after, or with a clock that was wrong.
        read(&whole, 0).iter().for_each(works);
        read(&whole, 17_000_000_000).iter().for_each(works);
    }
    let _ = fs::remove_file(&*FILE);
});

fn sum(bytes: &[u8]) -> [u8; 8] {
    xxh3_64(bytes).to_le_bytes()
}

/// Reads a file; what is wrong with it is within it.
fn read(content: &[u8], secs: u64) -> Result<MemoryStore, StateError> {
    fs::write(&*FILE, content).expect("there is room");
    let read = MemoryStore::builder().clock(clock(secs)).build_from(&*FILE);
    match &read {
        Err(StateError::Damaged { offset, .. }) => assert!(*offset <= content.len() as u64),
        Err(StateError::Foreign { .. }) => assert!(!content.starts_with(b"dashpot\x1a")),
        Err(StateError::Newer { .. }) => assert!(content.len() >= 12),
        Err(error) => panic!("{error}"),
        Ok(_) => {}
    }
    read
}

/// Whatever is in it, it answers: with the policies that seeds are about, and with others.
fn works(store: &MemoryStore) {
    for (name, quota) in [("a", "3/min"), ("b", "7/s burst 9"), ("b", "5/s"), ("c", "4/h")] {
        let policy = Policy::new(name, quota.parse().expect("a quota")).expect("a policy");
        for key in ["x", "y", "z"] {
            let decision = store.decide_now(&[Check::new(&policy, key)]);
            assert_eq!(decision.statuses().len(), 1);
            assert!(decision.statuses()[0].remaining() <= decision.statuses()[0].limit());
        }
    }
    let _ = store.usage();
}
