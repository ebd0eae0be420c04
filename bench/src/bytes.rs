//! What a key costs in memory: growth of resident memory, keys and all.

use std::time::Duration;

use dashpot::{Algorithm, Limiter, ManualClock, MemoryStore, Policy};

use crate::Scale;
use crate::child::rounds;
use crate::machine::{peak, resident};
use crate::peer::{Job, PEERS, Peer, Rate, Setup, with};
use crate::results::{self, Wanted};
use crate::table::{Table, count, number};
use crate::workload::Newcomers;

/// Name, quota, algorithm, and how often each key asks.
type Kind = (&'static str, &'static str, Algorithm, u64);

/// What is wanted of a kind, in bytes.
fn most(&(_, _, algorithm, checks): &Kind) -> Option<f64> {
    match algorithm {
        Algorithm::TokenBucket => Some(40.0),
        Algorithm::FixedWindow | Algorithm::SlidingWindow => Some(56.0),
        Algorithm::SlidingLog => Some(32.0 + 8.0 * checks as f64),
        _ => None,
    }
}

const KINDS: [Kind; 7] = [
    ("dashpot, token bucket 100/min", "100/min", Algorithm::TokenBucket, 1),
    ("dashpot, token bucket 7/s", "7/s", Algorithm::TokenBucket, 1),
    ("dashpot, fixed window", "100/h", Algorithm::FixedWindow, 1),
    ("dashpot, sliding window", "100/h", Algorithm::SlidingWindow, 1),
    ("dashpot, sliding log of 1", "10/h", Algorithm::SlidingLog, 1),
    ("dashpot, sliding log of 10", "10/h", Algorithm::SlidingLog, 10),
    ("dashpot, concurrency", "10 concurrent", Algorithm::Concurrency, 1),
];

pub(crate) fn report(scale: Scale) {
    let kinds = KINDS.iter().map(|(name, ..)| *name);
    let subjects: Vec<&str> = kinds.chain(PEERS.into_iter().skip(1)).collect();
    let mut table = Table::new(["limiter", "keys", "bytes per key", "at the peak"]);
    for keys in [1_000_000, 10_000_000] {
        if keys > 1_000_000 && scale < Scale::Full {
            continue;
        }
        let figures = rounds(1, "bytes", &subjects, &[keys.to_string()]);
        for (subject, figures) in subjects.iter().zip(figures) {
            let kind = KINDS.iter().find(|(name, ..)| name == subject);
            if let Some(most) = kind.and_then(most) {
                let work = format!("{subject}, {} keys", count(keys as f64));
                results::goal("P2", work, Wanted::AtMost(most), figures.get(0), "bytes per key");
            }
            let lead = [(*subject).to_owned(), count(keys as f64)];
            table.row(lead.into_iter().chain([number(figures.get(0)), number(figures.get(1))]));
        }
    }
    table.print(
        "Memory",
        "Growth of resident memory per key, at the end and at its peak, from an empty limiter. \
         Keys have 13 bytes. Wanted: at most 40 for buckets, 56 for windows, 32 + 8 per entry for \
         logs.",
    );
}

/// `SUBJECT KEYS`: bytes per key, and at the peak.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[subject, keys] = args else { panic!("wrong arguments: {args:?}") };
    let keys = keys.parse().expect("a number of keys");
    match KINDS.iter().find(|(name, ..)| *name == subject) {
        Some(kind) => of_kind(kind, keys),
        None => with(subject, Bytes(keys)),
    }
}

struct Bytes(usize);

impl Job for Bytes {
    fn run<P: Peer>(self) -> Vec<f64> {
        let mut newcomers = Newcomers::new();
        growth(self.0, || {
            let peer = P::new(&Setup { rate: Rate::STRICT, keys: self.0, sweeping: false });
            each_key(&mut newcomers, self.0, |key| assert!(peer.check(key)));
            peer
        })
    }
}

fn of_kind(&(_, quota, algorithm, checks): &Kind, keys: usize) -> Vec<f64> {
    let quota = quota.parse().expect("a quota");
    let policy = Policy::builder("bench", quota).algorithm(algorithm).build();
    let policy = policy.expect("a quota that fits");
    let mut newcomers = Newcomers::new();
    growth(keys, || {
        // Time stands still while keys come, so that none goes idle; and no two checks of a key are
        // of one moment, which a log might write down as one.
        let clock = ManualClock::default();
        let limiter = Limiter::on(
            policy,
            MemoryStore::builder().max_keys(usize::MAX).clock(clock.clone()).build(),
        );
        for _ in 0..checks {
            newcomers.restart();
            each_key(&mut newcomers, keys, |key| assert!(limiter.check(key).is_allowed()));
            clock.advance(Duration::from_nanos(1));
        }
        limiter
    })
}

fn each_key(newcomers: &mut Newcomers, keys: usize, mut ask: impl FnMut(&String)) {
    let mut left = keys;
    while left > 0 {
        let batch = newcomers.next();
        let part = &batch[..left.min(batch.len())];
        part.iter().for_each(&mut ask);
        left -= part.len();
    }
}

/// By how many bytes per key memory grows while something is built, and how far it went meanwhile.
fn growth<T>(keys: usize, build: impl FnOnce() -> T) -> Vec<f64> {
    let before = resident();
    let built = build();
    let growth = [resident() - before, peak() - before];
    drop(built);
    growth.map(|bytes| bytes / keys as f64).to_vec()
}
