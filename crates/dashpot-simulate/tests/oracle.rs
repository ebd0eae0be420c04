//! What a run says, against the slow exact model and sums made the slow way.

use std::time::Duration;

use dashpot::{Algorithm, Check, Key, ManualClock, Policy, Quota, Store, Window};
use dashpot_simulate::{Arrival, START, Setting, run};
use dashpot_testkit::{OracleStore, block_on};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn policies() -> impl Strategy<Value = Policy> {
    let windows = prop::sample::select(vec![1_u64, 3, 7, 10, 60]);
    let algorithms = prop::sample::select(vec![
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
    ]);
    (1_u64..12, windows, algorithms, 0_u64..8, 0_u64..8).prop_map(
        |(count, seconds, algorithm, places, undelayed)| {
            let window = Window::new(Duration::from_secs(seconds)).unwrap();
            let policy = Policy::builder("p", Quota::new(count, window)).algorithm(algorithm);
            match algorithm {
                Algorithm::LeakyBucket => policy.queue(places).undelayed(undelayed.min(places)),
                _ => policy,
            }
            .build()
            .unwrap()
        },
    )
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    // Many at once, some a moment apart, some after a long time.
    let gap = prop_oneof![3 => Just(0), 3 => 1..SECOND, 1 => 1..20 * SECOND, 1 => Just(SECOND)];
    prop::collection::vec((gap, 0_u32..3, 0_u64..4), 0..80).prop_map(|all| {
        let mut at = 0;
        let arrive = |(gap, caller, cost)| {
            at += gap;
            Arrival { at, caller, cost }
        };
        all.into_iter().map(arrive).collect()
    })
}

/// Somebody was let pass.
struct Passed {
    caller: u32,
    leaves: u64,
    delay: u64,
    units: u64,
}

fn by_the_oracle(policy: &Policy, arrivals: &[Arrival]) -> Vec<Passed> {
    let clock = ManualClock::new(START);
    let store = OracleStore::with_clock(clock.clone());
    let mut passed = Vec::new();
    for Arrival { at, caller, cost } in arrivals {
        clock.set(START.after(Duration::from_nanos(*at)));
        let key = caller.to_be_bytes();
        let check = Check::new(policy, Key::new(&key)).cost(*cost);
        let decision = block_on(store.decide(&[check])).unwrap();
        if decision.is_allowed() {
            let delay = u64::try_from(decision.delay().as_nanos()).unwrap();
            passed.push(Passed { caller: *caller, leaves: at + delay, delay, units: *cost });
        }
    }
    passed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("DASHPOT_FULL").is_some() { 4096 } else { 256 }, ..ProptestConfig::default() })]

    #[test]
    fn a_run_says_what_the_oracle_says(policy in policies(), arrivals in arrivals()) {
        let length = arrivals.last().map_or(1, |last| last.at + 1);
        let setting = Setting { length: Duration::from_nanos(length), ..Setting::default() };
        let run = run(&policy, arrivals.iter().copied(), &setting);
        let passed = by_the_oracle(&policy, &arrivals);
        prop_assert_eq!(run.asked, arrivals.len() as u64);
        prop_assert_eq!(run.admitted, passed.len() as u64);
        prop_assert_eq!(run.denied, run.asked - run.admitted);

        // The worst window, looked for behind every departure.
        let window = policy.quota().window().unwrap().length().as_nanos() as u64;
        let within = |end: u64, caller: u32| -> u64 {
            let own = passed.iter().filter(|one| one.caller == caller && one.leaves <= end);
            own.filter(|one| one.leaves + window > end).map(|one| one.units).sum()
        };
        let worst = passed.iter().map(|one| within(one.leaves, one.caller)).max().unwrap_or(0);
        prop_assert_eq!(run.worst.units, worst);
        if worst > 0 {
            prop_assert_eq!(within(run.worst.at, run.worst.caller), worst);
        }

        let mut delays: Vec<u64> = passed.iter().map(|one| one.delay).collect();
        delays.sort_unstable();
        let rank = (delays.len() * 99).div_ceil(100);
        let p99 = rank.checked_sub(1).map_or(0, |place| delays[place]);
        prop_assert_eq!(run.p99_delay, Duration::from_nanos(p99));
        prop_assert_eq!(run.longest_delay, Duration::from_nanos(delays.last().copied().unwrap_or(0)));

        // What the picture shows is all there is, but for what leaves after its end.
        let shown: u64 = run.series.counts().iter().map(|counts| counts.passed).sum();
        let seen: u64 = passed.iter().filter(|one| one.leaves < length).map(|one| one.units).sum();
        prop_assert_eq!(shown, seen);
        // And the line has the same peak, and ends where it should.
        let own = passed.iter().filter(|one| one.caller == 0 && one.leaves < length);
        let peak = own.map(|one| within(one.leaves, 0)).max().unwrap_or(0);
        prop_assert_eq!(run.followed.iter().map(|(_, units)| *units).max(), Some(peak));
        if passed.iter().all(|one| one.leaves < length) {
            prop_assert_eq!(run.followed.last().map(|(_, units)| *units), Some(within(length, 0)));
        }
    }
}

/// So many at once: given back when they were served, and not before.
#[test]
fn places_are_held_for_as_long_as_it_takes() {
    let policy = Policy::new("p", Quota::concurrent(3)).unwrap();
    let each = |tenths: u64| Arrival { at: tenths * SECOND / 10, caller: 0, cost: 1 };
    let setting = Setting { takes: Duration::from_secs(1), ..Setting::default() };
    // Three enter, the next seven find no room, then the first has left.
    let told = run(&policy, (0..11).map(each), &setting);
    assert_eq!((told.admitted, told.denied, told.worst.units), (4, 7, 3));
}
