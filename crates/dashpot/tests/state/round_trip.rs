//! What goes in comes out, under the rules of then or of now.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, thread};

use dashpot::{
    Algorithm, Check, Decision, Key, KeyOperation, Limiter, ManualClock, MemoryStore, Policy,
    Quota, StateKeeper, Timestamp, Window, Zone,
};
use dashpot_testkit::limit;

use super::scratch::Scratch;

const START: Timestamp = Timestamp::from_secs(1_800_000_123);

pub(super) fn clock() -> ManualClock {
    ManualClock::new(START)
}

/// One of each kind, and some that need more room than others.
pub(super) fn policies() -> Vec<Policy> {
    let mut policies: Vec<_> = [Algorithm::TokenBucket, Algorithm::LeakyBucket]
        .into_iter()
        .chain([Algorithm::FixedWindow, Algorithm::SlidingLog, Algorithm::SlidingWindow])
        .map(|algorithm| limit(algorithm.name(), algorithm, 20, Window::MINUTE))
        .collect();
    policies.push(limit("awkward", Algorithm::TokenBucket, 7919, Window::SECOND));
    policies.push(limit("huge", Algorithm::SlidingWindow, 1 << 50, Window::HOUR));
    let queue = Policy::builder("queue", "10/s".parse().unwrap());
    policies.push(queue.algorithm(Algorithm::LeakyBucket).queue(9).undelayed(3).build().unwrap());
    let tokyo: Zone = "Asia/Tokyo".parse().unwrap();
    let daily = Policy::builder("daily", Quota::per_day(50)).algorithm(Algorithm::FixedWindow);
    policies.push(daily.zone(tokyo).build().unwrap());
    policies.push(Policy::new("odd \u{3b1} name", "3/90s burst 17".parse().unwrap()).unwrap());
    policies
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// Takes something from many keys, at many times, and from each of them twice.
pub(super) fn use_up(store: &MemoryStore, clock: &ManualClock, policies: &[Policy], keys: u64) {
    for number in (0..keys).chain(0..keys) {
        for policy in policies {
            let key = key(number);
            let check = Check::new(policy, &key).cost(number % 5 + 1);
            let decision = store.decide_now(&[check]);
            if number % 7 == 0
                && let Some(reservation) = check.reservation(&decision)
            {
                store.settle_now(&reservation, (number % 11).into());
            }
        }
        clock.advance(Duration::from_micros(number % 100));
    }
}

pub(super) fn standing<'p>(store: &MemoryStore, policy: &'p Policy, number: u64) -> Decision<'p> {
    store.manage_now(policy, Key::from(&key(number)), KeyOperation::Peek)
}

#[test]
fn every_key_stands_as_it_stood() {
    let (scratch, clock, policies) = (Scratch::new(), clock(), policies());
    let store = MemoryStore::with_clock(clock.clone());
    use_up(&store, &clock, &policies, 2000);
    let saved = store.save(scratch.file()).unwrap();
    let restored = MemoryStore::builder().clock(clock.clone()).build_from(scratch.file()).unwrap();
    assert_eq!(restored.len() as u64, saved);
    for policy in &policies {
        for number in 0..2000 {
            let (then, now) =
                (standing(&store, policy, number), standing(&restored, policy, number));
            assert_eq!(then, now, "{policy}");
        }
    }
    // And both go on in the same way.
    clock.advance(Duration::from_millis(300));
    for (policy, number) in policies.iter().flat_map(|policy| (0..100).map(move |n| (policy, n))) {
        let key = key(number);
        let check = [Check::new(policy, &key).cost(3)];
        assert_eq!(store.decide_now(&check), restored.decide_now(&check), "{policy}");
    }
}

#[test]
fn a_restored_store_can_be_saved_and_restored_again() {
    let (scratch, clock, policies) = (Scratch::new(), clock(), policies());
    let store = MemoryStore::with_clock(clock.clone());
    use_up(&store, &clock, &policies, 300);
    store.save(scratch.file()).unwrap();
    let open = || MemoryStore::builder().clock(clock.clone()).build_from(scratch.file()).unwrap();
    let keys = open().save(scratch.file()).unwrap();
    let again = open();
    assert_eq!(again.len() as u64, keys);
    for (policy, number) in policies.iter().flat_map(|policy| (0..300).map(move |n| (policy, n))) {
        assert_eq!(standing(&store, policy, number), standing(&again, policy, number), "{policy}");
    }
}

/// The rules changed while nobody was there. What was used stays used, as if they had changed
/// before everybody's eyes.
#[test]
fn new_rules_find_the_units_used() {
    let (scratch, clock) = (Scratch::new(), clock());
    for algorithm in Algorithm::ALL.into_iter().filter(|&one| one != Algorithm::Concurrency) {
        let old = limit("p", algorithm, 20, Window::MINUTE);
        let new = limit("p", algorithm, 35, Window::MINUTE);
        let store = MemoryStore::with_clock(clock.clone());
        use_up(&store, &clock, std::slice::from_ref(&old), 50);
        store.save(scratch.file()).unwrap();
        let builder = MemoryStore::builder().clock(clock.clone());
        let restored = builder.build_from(scratch.file()).unwrap();
        for number in 0..50 {
            let (then, now) = (standing(&store, &new, number), standing(&restored, &new, number));
            assert_eq!(then, now, "{algorithm}");
        }
    }
}

#[test]
fn time_goes_on_while_nobody_is_there() {
    let (scratch, clock) = (Scratch::new(), clock());
    let policy = limit("p", Algorithm::TokenBucket, 10, Window::SECOND);
    let limiter = Limiter::on(policy.clone(), MemoryStore::with_clock(clock.clone()));
    assert!(limiter.check_n("k", 10).is_allowed());
    limiter.store().save(scratch.file()).unwrap();
    clock.advance(Duration::from_millis(500));
    let restored = MemoryStore::builder().clock(clock).build_from(scratch.file()).unwrap();
    assert_eq!(Limiter::on(policy, restored).peek("k").statuses()[0].remaining(), 5);
}

#[test]
fn blocks_are_kept_and_permits_are_not() {
    let (scratch, clock) = (Scratch::new(), clock());
    let rate = Policy::new("rate", Quota::per_second(5)).unwrap();
    let uploads = Policy::new("uploads", Quota::concurrent(1)).unwrap();
    let free = Policy::new("free", Quota::UNLIMITED).unwrap();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let until = START.after(Duration::from_secs(60));
    for policy in [&rate, &uploads, &free] {
        let _ = store.manage_now(policy, Key::from("k"), KeyOperation::Block(until));
    }
    let _permit = Limiter::on(uploads.clone(), store.clone()).acquire("other").unwrap();
    store.save(scratch.file()).unwrap();
    let builder = MemoryStore::builder().clock(clock.clone());
    let restored = Arc::new(builder.build_from(scratch.file()).unwrap());
    for policy in [&rate, &uploads, &free] {
        let decision = restored.decide_now(&[Check::new(policy, "k")]);
        assert_eq!(decision.retry_after(), Some(Duration::from_secs(60)), "{policy}");
    }
    // Whoever held it is gone, and would never give it back.
    assert!(Limiter::on(uploads, restored).acquire("other").is_ok());
}

/// With less room than before, nobody gets more than before.
#[test]
fn a_smaller_store_forgives_nobody() {
    let (scratch, clock) = (Scratch::new(), clock());
    for algorithm in Algorithm::ALL.into_iter().filter(|&one| one != Algorithm::Concurrency) {
        let policy = limit("p", algorithm, 20, Window::MINUTE);
        let store = MemoryStore::with_clock(clock.clone());
        use_up(&store, &clock, std::slice::from_ref(&policy), 200);
        store.save(scratch.file()).unwrap();
        let builder = MemoryStore::builder().clock(clock.clone()).max_keys(20);
        let restored = builder.build_from(scratch.file()).unwrap();
        assert!(restored.len() <= 20);
        for number in 0..200 {
            let remaining = |store| standing(store, &policy, number).statuses()[0].remaining();
            assert!(remaining(&restored) <= remaining(&store), "{algorithm}");
        }
    }
}

/// Nor are those forgiven who were counted together with others.
#[test]
fn overflow_cells_are_kept() {
    let (scratch, clock) = (Scratch::new(), clock());
    let policy = limit("p", Algorithm::TokenBucket, 1, Window::HOUR);
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(1).build();
    for number in 0..100 {
        let _ = store.decide_now(&[Check::new(&policy, &key(number))]);
    }
    store.save(scratch.file()).unwrap();
    let builder = MemoryStore::builder().clock(clock).max_keys(1);
    let restored = builder.build_from(scratch.file()).unwrap();
    for number in 0..100 {
        assert!(!restored.decide_now(&[Check::new(&policy, &key(number))]).is_allowed());
    }
}

/// Nor are those who are blocked together with others, because a permit of theirs is out.
#[test]
fn blocks_of_cells_are_kept() {
    let (scratch, clock) = (Scratch::new(), clock());
    let uploads = limit("uploads", Algorithm::Concurrency, 5, Window::MINUTE);
    let store = Arc::new(MemoryStore::builder().clock(clock.clone()).max_keys(0).build());
    let limiter = Limiter::on(uploads.clone(), store.clone());
    let _permit = limiter.acquire("k").unwrap();
    limiter.block("k", Duration::from_secs(60));
    assert!(limiter.acquire("k").is_err());
    store.save(scratch.file()).unwrap();
    let builder = MemoryStore::builder().clock(clock).max_keys(0);
    let restored = Arc::new(builder.build_from(scratch.file()).unwrap());
    let denied = restored.decide_now(&[Check::new(&uploads, "k")]);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(60)));
}

#[test]
fn only_the_owner_can_read_it() {
    let scratch = Scratch::new();
    MemoryStore::new().save(scratch.file()).unwrap();
    let mode = fs::metadata(scratch.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(scratch.names(), ["dashpot.state"], "and nothing else is left");
}

#[test]
fn without_a_file_it_starts_empty() {
    let scratch = Scratch::new();
    assert!(MemoryStore::builder().build_from(scratch.file()).unwrap().is_empty());
    assert!(scratch.names().is_empty());
}

/// Checks go on while it is written, and what they take is in this file or in the next.
#[test]
fn it_is_written_while_others_check() {
    let (scratch, clock) = (Scratch::new(), clock());
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let policy = limit("p", Algorithm::FixedWindow, u64::MAX, Window::DAY);
    let (stop, stopped) = mpsc::channel::<()>();
    let checking = {
        let (store, policy) = (store.clone(), policy.clone());
        thread::spawn(move || {
            let mut rounds = 0;
            while stopped.try_recv().is_err() {
                for number in 0..5000 {
                    assert!(store.decide_now(&[Check::new(&policy, &key(number))]).is_allowed());
                }
                rounds += 1;
            }
            rounds
        })
    };
    for _ in 0..20 {
        store.save(scratch.file()).unwrap();
        let restored = MemoryStore::builder().clock(clock.clone()).build_from(scratch.file());
        let restored = restored.unwrap();
        let used =
            |number| u64::MAX - standing(&restored, &policy, number).statuses()[0].remaining();
        let counts: Vec<_> = (0..5000).map(used).collect();
        // Whoever is in the file once is in it with all he had taken when his page was copied.
        let live: Vec<_> = (0..5000)
            .map(|number| u64::MAX - standing(&store, &policy, number).statuses()[0].remaining())
            .collect();
        assert!(counts.iter().zip(&live).all(|(saved, live)| saved <= live));
    }
    stop.send(()).unwrap();
    let rounds: u64 = checking.join().unwrap();
    store.save(scratch.file()).unwrap();
    let restored = MemoryStore::builder().clock(clock).build_from(scratch.file()).unwrap();
    for number in 0..5000 {
        let remaining = standing(&restored, &policy, number).statuses()[0].remaining();
        assert_eq!(remaining, u64::MAX - rounds);
    }
}

#[test]
fn a_keeper_saves_now_and_then_and_at_the_end() {
    let scratch = Scratch::new();
    let store = Arc::new(MemoryStore::new());
    let limiter = Limiter::on(Policy::new("p", Quota::per_day(10)).unwrap(), store.clone());
    let taken = || {
        let restored = MemoryStore::builder().build_from(scratch.file()).unwrap();
        let restored = Limiter::on(limiter.policy().clone(), restored);
        10 - restored.peek("k").statuses()[0].remaining()
    };
    let every = Duration::from_millis(1);
    let keeper = StateKeeper::start(store.clone(), scratch.file(), every, |_| ()).unwrap();
    assert!(limiter.check_n("k", 2).is_allowed());
    let patience = std::time::Instant::now();
    while taken() != 2 {
        assert!(patience.elapsed() < Duration::from_secs(20), "it is saved soon");
    }
    drop(keeper);

    let never = Duration::MAX;
    let keeper = StateKeeper::start(store.clone(), scratch.file(), never, |_| ()).unwrap();
    assert!(limiter.check_n("k", 1).is_allowed());
    keeper.close().unwrap();
    assert_eq!(taken(), 3);
    let keeper = StateKeeper::start(store, scratch.file(), never, |_| ()).unwrap();
    assert!(limiter.check_n("k", 1).is_allowed());
    drop(keeper);
    assert_eq!(taken(), 4);
}
