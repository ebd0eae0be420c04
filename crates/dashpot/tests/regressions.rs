//! Counter-examples that were found once, and what they were about.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Key, KeyOperation, Limiter, ManualClock, MemoryStore, Policy, Quota,
    Reservation, Timestamp, Window,
};

struct Scene {
    clock: ManualClock,
    store: MemoryStore,
}

impl Scene {
    fn new(start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        Self { store: MemoryStore::with_clock(clock.clone()), clock }
    }

    fn take(&self, policy: &Policy, cost: u64) -> bool {
        self.store.decide_now(&[Check::new(policy, "k").cost(cost)]).is_allowed()
    }

    fn reserve(&self, policy: &Policy, cost: u64) -> Reservation {
        let check = Check::new(policy, "k").cost(cost);
        check.reservation(&self.store.decide_now(&[check])).unwrap()
    }

    fn remaining(&self, policy: &Policy) -> u64 {
        self.peek(policy).0
    }

    fn reset_after(&self, policy: &Policy) -> Duration {
        self.peek(policy).1
    }

    fn peek(&self, policy: &Policy) -> (u64, Duration) {
        let decision = self.store.decide_now(&[Check::new(policy, "k").cost(0)]);
        let status = decision.statuses()[0];
        (status.remaining(), status.reset_after())
    }

    fn advance(&self, nanos: u64) {
        self.clock.advance(Duration::from_nanos(nanos));
    }

    fn back(&self, nanos: u64) {
        self.clock.set(self.clock.now().before(Duration::from_nanos(nanos)));
    }
}

fn policy(quota: &str, algorithm: Algorithm) -> Policy {
    Policy::builder("p", quota.parse().unwrap()).algorithm(algorithm).build().unwrap()
}

/// The end of a window was a moment, and moments end in 2262; the window did not.
#[test]
fn a_window_may_end_after_the_last_moment() {
    let scene = Scene::new(Timestamp::MAX);
    let half_century = Quota::new(13, Window::months(597).unwrap());
    let policy =
        Policy::builder("p", half_century).algorithm(Algorithm::FixedWindow).build().unwrap();
    assert!(scene.take(&policy, 1));
    assert_eq!(scene.remaining(&policy), 12);
    assert!(scene.reset_after(&policy) > Duration::from_secs(365 * 86_400));
}

/// A block until now or before ends any block. It was kept as it was, and came back to life when
/// the clock went back.
#[test]
fn a_block_that_is_over_from_the_start_does_not_come_back() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let policy = policy("3/s", Algorithm::TokenBucket);
    let over = KeyOperation::Block(scene.clock.now());
    let _ = scene.store.manage_now(&policy, Key::from("k"), over);
    scene.back(1_000_000_000);
    assert!(scene.take(&policy, 3));
}

/// A log's debt was cut to twice the limit, because more changes no answer; but then the limit was
/// raised, and it did.
#[test]
fn a_logs_debt_is_there_when_the_limit_is_raised() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let three = policy("3/h", Algorithm::SlidingLog);
    let thirty = policy("30/h", Algorithm::SlidingLog);
    scene.store.settle_now(&scene.reserve(&three, 0), 20.into());
    assert_eq!(scene.remaining(&thirty), 10);
    let none = policy("0/h", Algorithm::SlidingLog);
    scene.store.settle_now(&scene.reserve(&none, 0), 5.into());
    assert_eq!(scene.remaining(&thirty), 5);
}

/// A log drops what has left the window when it is next charged. With the clock set back, that was
/// an amnesty: 3 admitted at 0 and 115 s, and then again at 0.
#[test]
fn a_log_is_not_rewound_by_its_clock() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let policy = policy("3/100s", Algorithm::SlidingLog);
    assert!(scene.take(&policy, 1));
    scene.advance(115_000_000_000);
    assert!(scene.take(&policy, 2));
    scene.back(115_000_000_000);
    assert!(scene.take(&policy, 1));
    assert!(!scene.take(&policy, 1));
    assert_eq!(scene.reset_after(&policy), Duration::from_secs(215));
}

/// Giving back the newest admission must not take the log's time back with it.
#[test]
fn a_log_is_not_rewound_by_giving_back() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let policy = policy("1/h", Algorithm::SlidingLog);
    assert!(scene.take(&policy, 1));
    scene.advance(3_600_000_000_000);
    let reservation = scene.reserve(&policy, 1);
    scene.back(1);
    scene.store.settle_now(&reservation, 0.into());
    assert!(scene.take(&policy, 1));
    assert_eq!(scene.reset_after(&policy), Duration::from_nanos(3_600_000_000_001));
}

/// A limit of 0 counted in whole units, so a limit that went to 0 and back lost up to a unit.
#[test]
fn a_limit_that_goes_to_zero_and_back_loses_nothing() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let weekly = policy("1/week burst 100", Algorithm::TokenBucket);
    let closed = policy("0/week", Algorithm::TokenBucket);
    assert!(scene.take(&weekly, 2));
    scene.advance(604_799_999_999_999);
    assert!(!scene.take(&closed, 1));
    let left = Duration::from_nanos(604_800_000_000_001);
    assert_eq!(scene.reset_after(&weekly), left);
}

/// An idle bucket had a level again when its limit changed and then the clock went back.
#[test]
fn an_idle_bucket_stays_idle_when_its_limit_changes() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let slow = policy("1/h burst 3", Algorithm::TokenBucket);
    let fast = policy("100/h burst 3", Algorithm::TokenBucket);
    assert!(scene.take(&slow, 1));
    scene.advance(7_200_000_000_000);
    assert_eq!(scene.remaining(&fast), 3);
    scene.back(1_000_000_000_000);
    assert_eq!(scene.remaining(&fast), 3);
}

/// A queue sets a bucket's capacity, and did so even where there was no limit.
#[test]
fn a_queue_limits_nothing_where_there_is_no_limit() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let unlimited = Policy::builder("p", Quota::UNLIMITED)
        .algorithm(Algorithm::LeakyBucket)
        .queue(3)
        .build()
        .unwrap();
    assert_eq!(unlimited.limit(), u64::MAX);
    assert!(scene.take(&unlimited, 5));
}

/// Permits without a limit kept a state that counts nothing, and a limit set later went on with it.
#[test]
fn a_limit_set_where_there_was_none_counts() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let permits =
        |quota| Policy::builder("p", quota).algorithm(Algorithm::Concurrency).build().unwrap();
    let (unlimited, two) = (permits(Quota::UNLIMITED), permits(Quota::concurrent(2)));
    let later = scene.clock.now().after(Duration::from_secs(1));
    let _ = scene.store.manage_now(&unlimited, Key::from("k"), KeyOperation::Block(later));
    scene.advance(1_000_000_000);
    assert!(scene.take(&unlimited, 9));
    assert!(scene.take(&two, 2));
    assert!(!scene.take(&two, 1));
}

/// Without a limit, or a block, there is nothing to remember.
#[test]
fn nothing_takes_no_memory() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let unlimited = Policy::new("p", Quota::UNLIMITED).unwrap();
    assert!(scene.take(&unlimited, u64::MAX));
    scene.store.settle_now(&scene.reserve(&unlimited, 1), 2.into());
    let limited = Policy::new("q", Quota::per_second(1)).unwrap();
    let _ = scene.store.manage_now(&limited, Key::from("k"), KeyOperation::Unblock);
    let _ = scene.store.manage_now(&limited, Key::from("k"), KeyOperation::Reset);
    assert!(scene.store.is_empty());
}

/// Permits taken before a reset do not come back after it; by a clock that went back, all were, and
/// none did.
#[test]
fn a_permit_taken_by_a_clock_behind_a_reset_comes_back() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let one = policy("1 concurrent", Algorithm::Concurrency);
    assert!(scene.take(&one, 1));
    let _ = scene.store.manage_now(&one, Key::from("k"), KeyOperation::Reset);
    scene.back(1);
    scene.store.settle_now(&scene.reserve(&one, 1), 0.into());
    assert!(scene.take(&one, 1));
}

/// Of two keys of one call that both found no room, the second dropped the first one's cell, which
/// was open but not charged yet, and the call waited for it for ever.
#[test]
fn several_keys_of_one_call_find_no_room() {
    let store = MemoryStore::builder().clock(ManualClock::default()).max_keys(0).build();
    let policy = policy("1/h", Algorithm::TokenBucket);
    let both = [Check::new(&policy, "a"), Check::new(&policy, "b")];
    assert!(store.decide_now(&both).is_allowed());
    assert!(!store.decide_now(&both).is_allowed());
}

/// Keys of one call that are counted in the same overflow cell took from it one after another, and
/// only the last one was remembered.
#[test]
fn keys_of_one_call_that_share_a_cell_are_counted_together() {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(0).build();
    let policy = policy("5/h", Algorithm::FixedWindow);
    let left = |key: &[u8; 4]| {
        let peek = store.decide_now(&[Check::new(&policy, key).cost(0)]);
        peek.statuses()[0].remaining()
    };
    assert!(store.decide_now(&[Check::new(&policy, "a").cost(5)]).is_allowed());
    let others = (0_u32..).map(u32::to_le_bytes);
    let alike = others.take(2_000_000).find(|key| left(key) == 0).expect("some share its cell");
    clock.advance(Duration::from_secs(3600));
    let both = [Check::new(&policy, "a"), Check::new(&policy, &alike).cost(2)];
    assert!(store.decide_now(&both).is_allowed());
    assert_eq!(left(&alike), 2);
}

/// A store without room for a single key: all are counted in cells.
fn crowded() -> (Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::new(Timestamp::from_secs(1000));
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(0).build();
    (Arc::new(store), clock)
}

/// To be blocked, a key that was counted in a cell was given a slot, and the slot knew nothing of what
/// it had used.
#[test]
fn a_block_does_not_forgive_who_is_counted_in_a_cell() {
    let (store, _clock) = crowded();
    let limiter = Limiter::on(policy("5/h", Algorithm::TokenBucket), store);
    assert!(limiter.check_n("k", 5).is_allowed());
    limiter.block("k", Duration::from_secs(1));
    limiter.unblock("k");
    assert!(!limiter.check("k").is_allowed());
}

/// And the permits it held were given back to the slot, so the cell kept them for ever.
#[test]
fn a_block_loses_no_permit_that_is_counted_in_a_cell() {
    let (store, clock) = crowded();
    let limiter = Limiter::on(policy("1 concurrent", Algorithm::Concurrency), store);
    let permit = limiter.acquire("k").unwrap();
    limiter.block("k", Duration::from_secs(1));
    limiter.reset("k");
    clock.advance(Duration::from_secs(2));
    assert!(limiter.acquire("k").is_err(), "it is still out");
    drop(permit);
    assert!(limiter.acquire("k").is_ok());
}

/// What was charged to a slot was given back to the cell in which others were counted by then.
#[test]
fn nothing_is_given_back_to_a_cell_that_was_charged_elsewhere() {
    let clock = ManualClock::new(Timestamp::from_secs(1000));
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(1).build();
    let limiter = Limiter::on(policy("10/s", Algorithm::TokenBucket), store);
    let early = limiter.reserve("a", 10).unwrap();
    clock.advance(Duration::from_secs(10));
    // Somebody else takes the only place there is, and "a" is counted in its cell.
    assert!(limiter.check_n("b", 10).is_allowed());
    assert!(limiter.check_n("a", 10).is_allowed());
    limiter.refund(early);
    assert!(!limiter.check("a").is_allowed());
}

/// Saving converted what was kept under a definition that was not to be in the file, in place: the
/// key then drained at another rate.
#[test]
fn saving_changes_nothing() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    for count in 1000..1070 {
        assert!(scene.take(&policy(&format!("{count}/s"), Algorithm::TokenBucket), 1));
    }
    let slow = policy("1/s burst 5", Algorithm::TokenBucket);
    let key = Check::new(&slow, "other").cost(5);
    assert!(scene.store.decide_now(&[key]).is_allowed());
    let path = std::env::temp_dir().join(format!("dashpot-regression-{}", std::process::id()));
    scene.store.save(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    scene.advance(10_000_000);
    assert!(!scene.store.decide_now(&[key]).is_allowed());
}

/// A charge that fits was written, and then a number that does not fit made it start over on what was
/// charged already.
#[test]
fn a_unit_of_a_hundred_years_is_charged_once() {
    let scene = Scene::new(Timestamp::from_secs(1000));
    let policy = policy("1/100year burst 5", Algorithm::TokenBucket);
    assert!(scene.take(&policy, 1));
    assert!(scene.take(&policy, 4));
    assert!(!scene.take(&policy, 1));
}

/// Debt beyond all numbers, rounded up, was none.
#[test]
fn debt_without_end_has_no_end() {
    let scene = Scene::new(Timestamp::EPOCH);
    let policy = policy("2/3155695199999999999ns", Algorithm::TokenBucket);
    for _ in 0..8 {
        let reservation =
            Reservation::new(policy.clone(), Key::from("k"), 0.into(), Timestamp::EPOCH);
        scene.store.settle_now(&reservation, u64::MAX.into());
    }
    assert!(scene.reset_after(&policy) > Duration::from_secs(1_000_000_000));
}

/// Slots of two words, made for a rate that needs them, and then a definition whose states would take
/// one: nothing is read from the wrong word.
#[test]
fn a_short_bucket_in_long_slots() {
    let scene = Scene::new(Timestamp::from_secs(1_700_000_000));
    let policy = |quota: &str| Policy::builder("same", quota.parse().unwrap()).build().unwrap();
    let (long, short) = (policy("7/s"), policy("1/s"));
    assert!(scene.take(&long, 7));
    assert!(!scene.take(&short, 1), "seven units are used, of one");
    let both = [Check::new(&short, "k"), Check::new(&short, "other")];
    assert!(!scene.store.decide_now(&both).is_allowed());
    scene.clock.advance(Duration::from_secs(7));
    assert!(scene.take(&short, 1));
    assert!(!scene.take(&short, 1));
    scene.clock.advance(Duration::from_secs(1));
    assert!(scene.store.decide_now(&both).is_allowed());
    assert!(!scene.store.decide_now(&both).is_allowed());
}

/// In a small table, keys of one call swept each other's slots away before they were charged, until all were counted in
/// overflow cells, where two of them may be counted as one.
#[test]
fn many_new_keys_of_one_call_have_slots_of_their_own() {
    for count in [8_u32, 16, 32, 64, 200] {
        for _ in 0..20 {
            let scene = Scene::new(Timestamp::from_secs(1_700_000_000));
            let policy = policy("1000/day", Algorithm::FixedWindow);
            let keys: Vec<String> = (0..count).map(|number| format!("key {number}")).collect();
            let checks: Vec<_> = keys.iter().map(|key| Check::new(&policy, &**key)).collect();
            let decision = scene.store.decide_now(&checks);
            assert!(decision.statuses().iter().all(|status| status.remaining() == 999));
            let usage = scene.store.usage();
            assert_eq!((usage.keys, usage.cells), (u64::from(count), 0));
        }
    }
}
