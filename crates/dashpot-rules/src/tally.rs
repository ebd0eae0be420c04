//! What came of a rule.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dashpot::PolicyStatus;

/// What came of a rule since it was loaded, carried over when it is loaded again.
#[derive(Debug, Default)]
pub struct Tally {
    allowed: Striped,
    near_limit: AtomicU64,
    denied: AtomicU64,
    would_have_denied: AtomicU64,
    degraded: AtomicU64,
}

impl Tally {
    /// How many requests it let pass.
    #[must_use]
    pub fn allowed(&self) -> u64 {
        self.allowed.sum()
    }

    /// How many of those left less than a fifth of a limit.
    #[must_use]
    pub fn near_limit(&self) -> u64 {
        self.near_limit.load(Ordering::Relaxed)
    }

    /// How many requests it denied.
    #[must_use]
    pub fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// How many it would have denied, were it enforced.
    #[must_use]
    pub fn would_have_denied(&self) -> u64 {
        self.would_have_denied.load(Ordering::Relaxed)
    }

    /// How many requests it went without the store for.
    #[must_use]
    pub fn degraded(&self) -> u64 {
        self.degraded.load(Ordering::Relaxed)
    }

    /// Counts one that passed, and left its limits so. Rules are counted for as they are asked; this is
    /// for limits that are in no rule.
    pub fn allow(&self, statuses: &[PolicyStatus<'_>]) {
        self.allowed.add();
        let is_near = |status: &PolicyStatus<'_>| status.remaining() < status.limit().div_ceil(5);
        if statuses.iter().any(is_near) {
            self.near_limit.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one that passed, or did not.
    pub(crate) fn count(&self, passed: bool) {
        if passed {
            self.allow(&[]);
        } else {
            self.deny();
        }
    }

    /// Counts one for which the store did not answer.
    pub fn go_without(&self) {
        self.degraded.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that was denied.
    pub fn deny(&self) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn would_deny(&self) {
        self.would_have_denied.fetch_add(1, Ordering::Relaxed);
    }
}

/// A count that every request adds to: each thread in a cache line of its own, or of few.
#[derive(Debug, Default)]
struct Striped([Stripe; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

const STRIPES: usize = 4;

/// How many threads have counted.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: usize = THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES;
}

impl Striped {
    fn add(&self) {
        let mine = MINE.try_with(|mine| *mine).unwrap_or_default();
        if let Some(stripe) = self.0.get(mine) {
            stripe.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}
