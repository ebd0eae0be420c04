//! Limits that somebody made up on the spot.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use dashpot::{Algorithm, Policy, Quota, Zone};
use parking_lot::RwLock;

use crate::limit::NAME;
use crate::serve::wrong::Wrong;

/// How many are remembered, to be found without being read again.
const REMEMBERED: usize = 4096;

/// How many windows and algorithms there may be: each has a table of its own in memory, for good, which stands in for
/// Redis as well.
const KINDS: usize = 1024;

/// A limit as it was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) limit: &'a str,
    pub(crate) algorithm: Option<&'a str>,
    pub(crate) queue: Option<u64>,
    pub(crate) undelayed: Option<u64>,
    pub(crate) zone: Option<&'a str>,
}

/// The policies of limits that somebody made up on the spot.
#[derive(Debug)]
pub(crate) struct Limits {
    /// By a hash of how they were written, then by that itself.
    known: RwLock<HashMap<u64, Vec<Known>>>,
    kinds: RwLock<HashSet<u64>>,
    seed: RandomState,
    in_memory: bool,
}

#[derive(Debug)]
struct Known {
    limit: String,
    algorithm: Option<String>,
    queue: Option<u64>,
    undelayed: Option<u64>,
    zone: Option<String>,
    policy: Policy,
}

impl Known {
    fn is(&self, written: &Written<'_>) -> bool {
        self.limit == written.limit
            && self.algorithm.as_deref() == written.algorithm
            && self.queue == written.queue
            && self.undelayed == written.undelayed
            && self.zone.as_deref() == written.zone
    }
}

impl Limits {
    pub(crate) fn new(in_memory: bool) -> Self {
        Self {
            known: RwLock::default(),
            kinds: RwLock::default(),
            seed: RandomState::new(),
            in_memory,
        }
    }

    /// The policy of a limit. `place` is what its fields are in, as in `checks[1].`.
    pub(crate) fn policy(&self, written: &Written<'_>, place: &str) -> Result<Policy, Wrong> {
        let Written { limit, algorithm, queue, undelayed, zone } = *written;
        let hash = self.seed.hash_one((limit, algorithm, queue, undelayed, zone));
        let find = |all: &Vec<Known>| Some(all.iter().find(|one| one.is(written))?.policy.clone());
        if let Some(policy) = self.known.read().get(&hash).and_then(find) {
            return Ok(policy);
        }
        let policy = build(written, place)?;
        // Also on Redis: while that does not answer, it is counted in memory.
        self.admit(&policy, place)?;
        if !self.in_memory {
            policy
                .fits_micros()
                .map_err(|wrong| Wrong::field(format!("{place}limit"), wrong.to_string()))?;
        }
        let mut known = self.known.write();
        // Rather than to find out which is oldest: to read them again is cheap.
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.entry(hash).or_default().push(Known {
            limit: limit.to_owned(),
            algorithm: algorithm.map(str::to_owned),
            queue,
            undelayed,
            zone: zone.map(str::to_owned),
            policy: policy.clone(),
        });
        Ok(policy)
    }

    /// Makes sure that there are not too many kinds.
    fn admit(&self, policy: &Policy, place: &str) -> Result<(), Wrong> {
        let quota = policy.quota();
        let kind = (policy.algorithm(), quota.window(), quota.is_unlimited(), policy.zone());
        let kind = self.seed.hash_one(kind);
        let mut kinds = self.kinds.write();
        if kinds.len() >= KINDS && !kinds.contains(&kind) {
            let detail = format!(
                "{KINDS} different windows and algorithms have been asked for, and each takes memory for good; \
                 use fewer"
            );
            return Err(Wrong::field(format!("{place}limit"), detail));
        }
        kinds.insert(kind);
        Ok(())
    }
}

/// The longest limit, algorithm or zone, in bytes. They are remembered as they are written.
const TEXT_MAX: usize = 128;

fn build(written: &Written<'_>, place: &str) -> Result<Policy, Wrong> {
    let texts =
        [("limit", Some(written.limit)), ("algorithm", written.algorithm), ("zone", written.zone)];
    if let Some((field, _)) =
        texts.iter().find(|(_, text)| text.is_some_and(|text| text.len() > TEXT_MAX))
    {
        return Err(Wrong::field(format!("{place}{field}"), format!("at most {TEXT_MAX} bytes")));
    }
    let wrong = |field: &str, error: &dyn std::fmt::Display| {
        Wrong::field(format!("{place}{field}"), error.to_string())
    };
    let quota: Quota = written.limit.parse().map_err(|error| wrong("limit", &error))?;
    let mut builder = Policy::builder(NAME, quota);
    if let Some(algorithm) = written.algorithm {
        let algorithm: Algorithm = algorithm.parse().map_err(|error| wrong("algorithm", &error))?;
        builder = builder.algorithm(algorithm);
    }
    if let Some(places) = written.queue {
        builder = builder.queue(places);
    }
    if let Some(places) = written.undelayed {
        builder = builder.undelayed(places);
    }
    if let Some(zone) = written.zone {
        let zone: Zone = zone.parse().map_err(|error| wrong("zone", &error))?;
        builder = builder.zone(zone);
    }
    builder.build().map_err(|error| {
        let field = match error {
            dashpot::PolicyError::Queue => "queue",
            dashpot::PolicyError::Undelayed => "undelayed",
            dashpot::PolicyError::Zone => "zone",
            dashpot::PolicyError::Form { .. } if written.algorithm.is_some() => "algorithm",
            _ => "limit",
        };
        wrong(field, &error)
    })
}
