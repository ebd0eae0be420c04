//! Buckets whose window may change, saved under one and restored under another; and files from before there were any.

use std::fs;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Key, KeyOperation, ManualClock, MemoryStore, Policy, StateError, Timestamp,
};
use xxhash_rust::xxh3::xxh3_64;

use super::round_trip::{clock, policies, standing, use_up};
use super::scratch::Scratch;

fn any(quota: &str, algorithm: Algorithm) -> Policy {
    let builder = Policy::builder("any", quota.parse().unwrap()).algorithm(algorithm);
    builder.any_window().build().unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn reset_after(store: &MemoryStore, policy: &Policy, number: u64) -> Duration {
    standing(store, policy, number).statuses()[0].reset_after()
}

/// So many that not all of their grains can be told apart; deep enough for whatever comes.
fn many(algorithm: Algorithm) -> Vec<Policy> {
    let odd = (3..203).map(|count| format!("{count}/s burst 100000000"));
    let even = [(1, "s"), (1, "min"), (5, "h"), (3, "day")]
        .map(|(count, window)| format!("{count}/{window} burst 100000000"));
    odd.chain(even).map(|quota| any(&quota, algorithm)).collect()
}

/// Some hundred keys, each under another window.
fn filled(algorithm: Algorithm, clock: &ManualClock, max_keys: usize) -> MemoryStore {
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(max_keys).build();
    for (number, policy) in (0..).zip(many(algorithm).iter().cycle().take(700)) {
        let decision = store.decide_now(&[Check::new(policy, &key(number)).cost(number % 3 + 1)]);
        assert!(decision.is_allowed(), "{policy}");
    }
    store
}

const BUCKETS: [Algorithm; 2] = [Algorithm::TokenBucket, Algorithm::LeakyBucket];

/// What is restored goes on under its own window or under another, as what was saved does. What was converted on its way
/// into the file was rounded up once more.
#[test]
fn time_outlives_the_process_whatever_window_comes_next() {
    let (scratch, clock) = (Scratch::new(), clock());
    for algorithm in BUCKETS {
        let store = filled(algorithm, &clock, 700);
        let saved = store.save(scratch.file()).unwrap();
        let restored = MemoryStore::builder().clock(clock.clone());
        let restored = restored.build_from(scratch.file()).unwrap();
        assert_eq!((saved, restored.len()), (700, 700));
        let policies = many(algorithm);
        for number in 0..700 {
            for step in [0, 61, 202] {
                let policy = &policies[(number as usize + step) % policies.len()];
                let then = reset_after(&store, policy, number);
                let now = reset_after(&restored, policy, number);
                let later = then + Duration::from_nanos(3);
                assert!(now >= then && now <= later, "{policy}: {then:?}, then {now:?}");
            }
        }
        clock.advance(Duration::from_millis(100));
        // And both are as new at the same moment, give or take that.
        let second = any("1/s burst 1", algorithm);
        for number in 0..700 {
            let [then, now] = [&store, &restored].map(|store| reset_after(store, &second, number));
            assert!(now >= then && now <= then + Duration::from_nanos(9), "{then:?}, then {now:?}");
        }
    }
}

/// With less room than before, those whose units take a day are counted together with those whose units take a
/// moment. Nobody gets more for it; nor is anybody made to wait for longer than all of them took.
#[test]
fn a_smaller_store_adds_up_time_and_not_units() {
    let (scratch, clock) = (Scratch::new(), clock());
    for (algorithm, before) in BUCKETS.into_iter().flat_map(|it| [(it, 700), (it, 5)]) {
        let store = filled(algorithm, &clock, before);
        store.save(scratch.file()).unwrap();
        let restored = MemoryStore::builder().clock(clock.clone()).max_keys(5);
        let restored = restored.build_from(scratch.file()).unwrap();
        assert!(restored.len() <= 5);
        let second = any("1/s burst 1", algorithm);
        let waits =
            |store| (0..700).map(move |number| reset_after(store, &any("1/s", algorithm), number));
        let all: Duration = waits(&store).sum();
        for (number, then) in (0..).zip(waits(&store)) {
            let now = reset_after(&restored, &second, number);
            assert!(now >= then, "{number}: {then:?}, then {now:?}");
            assert!(now <= all + Duration::from_micros(1), "{number}: {now:?} of {all:?}");
        }
    }
}

/// A version without any windows is the same but for a byte in each definition, and the number of the version.
fn first_version(file: &[u8]) -> Vec<u8> {
    struct Words<'f> {
        rest: &'f [u8],
        written: Vec<u8>,
    }
    impl Words<'_> {
        fn skip(&mut self, bytes: usize) -> &[u8] {
            let (taken, rest) = self.rest.split_at(bytes);
            self.rest = rest;
            taken
        }
        fn copy(&mut self, bytes: usize) -> u64 {
            let taken = self.skip(bytes).to_vec();
            self.written.extend(&taken);
            taken.iter().rev().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
        }
    }
    let mut words = Words { rest: file, written: Vec::new() };
    words.copy(8);
    assert_eq!(words.skip(4), 2_u32.to_le_bytes());
    words.written.extend(1_u32.to_le_bytes());
    words.copy(16);
    for _ in 0..words.copy(4) {
        for _ in 0..words.copy(2) {
            for _ in ["name", "algorithm", "quota", "zone"] {
                let length = words.copy(2) as usize;
                words.copy(length);
            }
            for _ in ["queue", "undelayed"] {
                let some = words.copy(1) as usize;
                words.copy(8 * some);
            }
            assert_eq!(words.skip(1), [0], "it has one window");
        }
        while words.copy(1) != 0 {
            words.copy(8 + 2 + 8);
            let length = words.copy(2) as usize;
            words.copy(8 * length);
        }
    }
    assert_eq!(words.rest.len(), 8, "and the sum");
    let sum = xxh3_64(&words.written);
    words.written.extend(sum.to_le_bytes());
    words.written
}

/// Who comes from the first version goes on where that was, and writes the second.
#[test]
fn the_first_version_is_still_read() {
    let (scratch, clock, policies) = (Scratch::new(), clock(), policies());
    let store = MemoryStore::with_clock(clock.clone());
    use_up(&store, &clock, &policies, 200);
    let until = Timestamp::from_secs(1_900_000_000);
    let _ = store.manage_now(&policies[0], Key::from("blocked"), KeyOperation::Block(until));
    let saved = store.save(scratch.file()).unwrap();
    let second = fs::read(scratch.file()).unwrap();
    let first = first_version(&second);
    assert!(first.len() < second.len());
    fs::write(scratch.file(), &first).unwrap();
    let open = || MemoryStore::builder().clock(clock.clone()).build_from(scratch.file()).unwrap();
    let restored = open();
    assert_eq!(restored.len() as u64, saved);
    for (policy, number) in policies.iter().flat_map(|policy| (0..200).map(move |n| (policy, n))) {
        assert!(!policy.is_any_window());
        assert_eq!(
            standing(&store, policy, number),
            standing(&restored, policy, number),
            "{policy}"
        );
    }
    assert!(!restored.decide_now(&[Check::new(&policies[0], "blocked")]).is_allowed());
    restored.save(scratch.file()).unwrap();
    assert_eq!(fs::read(scratch.file()).unwrap()[8..12], 2_u32.to_le_bytes());
    assert_eq!(open().len() as u64, saved);

    // What only looks like it is not.
    for wrong in [&second[..], &first[..]] {
        let mut wrong = wrong.to_vec();
        wrong[8] ^= 3;
        let sum = xxh3_64(&wrong[..wrong.len() - 8]);
        let end = wrong.len() - 8;
        wrong[end..].copy_from_slice(&sum.to_le_bytes());
        fs::write(scratch.file(), &wrong).unwrap();
        let error = MemoryStore::builder().build_from(scratch.file()).unwrap_err();
        assert!(matches!(error, StateError::Damaged { .. }), "{error}");
    }
}
