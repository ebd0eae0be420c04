//! For those who write a store that keeps its state elsewhere: the algorithms' answers to it.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::algorithm::Verdict;
use crate::memory::Kept;
use crate::policy::Definition;
use crate::{Cost, Policy, PolicyStatus, Retry, Standing, Timestamp};

/// The rate of a bucket in lowest terms: so many units in so many nanoseconds.
///
/// Buckets tell time in *grains* of 1/`units` of a nanosecond, so that a unit takes `nanos` grains, and
/// nothing is ever rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Units; also the grains in a nanosecond.
    pub units: u64,
    /// Nanoseconds; also the grains in the time of one unit.
    pub nanos: u64,
}

impl Rate {
    /// Which of the two is slower.
    pub(crate) fn slowness(self, other: Self) -> Ordering {
        let product = |units: u64, nanos: u64| u128::from(units) * u128::from(nanos);
        product(self.units, other.nanos).cmp(&product(other.units, self.nanos))
    }

    /// How long it takes at another rate what takes so many nanoseconds at this one; none if there is no telling.
    pub(crate) fn stretch(self, nanos: u64, other: Self) -> Option<u64> {
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let (own, other) = (product(self.units, other.nanos), product(other.units, self.nanos));
        let stretched = u128::from(nanos).checked_mul(own)?;
        (other > 0).then(|| u64::try_from(stretched.div_ceil(other)).ok())?
    }
}

/// What was counted for a key, as somebody else remembers it. Moments are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted<'a> {
    /// Nothing.
    Nothing,
    /// By a token or leaky bucket.
    Bucket {
        /// When it will be as good as new, in grains since the epoch.
        full_at: u128,
        /// The rate it was counted at. If the policy has another by now, as many units stay used.
        rate: Rate,
    },
    /// By a fixed window.
    FixedWindow {
        /// When the window started.
        start: u64,
        /// The units taken in it.
        count: u64,
    },
    /// By a sliding window.
    SlidingWindow {
        /// When the window started.
        start: u64,
        /// The units taken in the one before.
        previous: u64,
        /// The units taken in it.
        current: u64,
    },
    /// By a sliding log: moments in order, and how many units were taken by then in all. Entries
    /// that change no answer may be left out.
    SlidingLog(&'a [(u64, u64)]),
    /// Under concurrency: the permits that are out.
    Permits(u64),
}

/// What is remembered of one key, to be judged by its policy.
#[derive(Debug)]
pub struct KeyState {
    kept: Kept,
    /// Others that are to agree.
    others: SmallVec<[Arc<Definition>; 1]>,
    tick: u64,
}

impl KeyState {
    /// What was counted under this policy, and until when the key is blocked. What was counted by
    /// another algorithm is nothing.
    #[must_use]
    pub fn new(
        policy: &Policy,
        counted: Counted<'_>,
        blocked_until: Timestamp,
        now: Timestamp,
    ) -> Self {
        let mut kept = Kept::fresh(policy.definition().clone());
        kept.blocked_until = blocked_until;
        if let Some(state) = policy.definition().engine.recall(counted, now) {
            kept.state = state;
        }
        Self { kept, others: SmallVec::new(), tick: 1 }
    }

    /// Rounds waits up to multiples of this, for a clock that shows no others: a shorter wait would
    /// not be enough.
    #[must_use]
    pub const fn ticking(mut self, nanos: u64) -> Self {
        self.tick = if nanos == 0 { 1 } else { nanos };
        self
    }

    /// Lets it pass only what passes under these, too, which count the same thing. It is taken under its own.
    #[must_use]
    pub fn and_under<'p>(mut self, others: impl IntoIterator<Item = &'p Policy>) -> Self {
        self.others.extend(others.into_iter().map(|policy| policy.definition().clone()));
        self
    }

    fn verdict(&self, now: Timestamp, cost: Cost) -> Verdict {
        self.kept.verdict_of_all(&self.kept.definition, &self.others, now, cost.units())
    }

    /// Whether the cost passes.
    #[must_use]
    pub fn allows(&self, now: Timestamp, cost: Cost) -> bool {
        matches!(self.verdict(now, cost), Verdict::Allow { .. })
    }

    /// The answer to a check of this cost, which was taken if the whole decision is `allowed`.
    #[must_use]
    pub fn answer<'p>(
        mut self,
        policy: &'p Policy,
        now: Timestamp,
        cost: Cost,
        allowed: bool,
    ) -> PolicyStatus<'p> {
        let verdict = self.verdict(now, cost);
        if allowed {
            self.kept.charge(now, cost.units());
        }
        let standing = self.kept.standing_of_all(&self.kept.definition, &self.others, now);
        let standing = Standing {
            reset_after_nanos: self.ticks(standing.reset_after_nanos),
            available_after_nanos: standing.available_after_nanos.map(|wait| self.ticks(wait)),
            ..standing
        };
        match verdict {
            Verdict::Allow { delay } => {
                let delay = if allowed { self.ticks(delay) } else { 0 };
                PolicyStatus::allow(policy, standing, delay)
            }
            Verdict::Deny(Retry::After(wait)) => {
                PolicyStatus::deny(policy, standing, Retry::After(self.ticks(wait)))
            }
            Verdict::Deny(retry) => PolicyStatus::deny(policy, standing, retry),
        }
    }

    fn ticks(&self, wait: u64) -> u64 {
        wait.checked_next_multiple_of(self.tick).unwrap_or(u64::MAX)
    }
}

/// The last whole number below which doubles are sure of every whole number.
const SURE: u64 = 1 << 53;

/// A hundred years, in microseconds.
const LONGEST: u128 = 3_155_695_200_000_000;

impl Policy {
    /// Whether a store can keep it exactly whose clock shows microseconds and whose numbers are doubles, as
    /// Redis's scripts have them.
    ///
    /// # Errors
    /// If it cannot: what would not be exact is not tried.
    pub fn fits_micros(&self) -> Result<(), Unfit> {
        let (limit, Some(_)) = (self.limit(), self.quota().count()) else { return Ok(()) };
        if limit >= SURE {
            return Err(Unfit::Count(limit));
        }
        let window = self.quota().window().map(|window| window.length().as_nanos());
        if window.is_some_and(|nanos| !nanos.is_multiple_of(1000)) {
            return Err(Unfit::Window);
        }
        if let Some(Rate { units, nanos }) = self.rate().filter(|rate| rate.units > 0) {
            if units >= SURE / 2000 {
                return Err(Unfit::Rate);
            }
            let depth = u128::from(limit) * u128::from(nanos) / u128::from(units) / 1000;
            if depth > LONGEST {
                return Err(Unfit::Depth);
            }
        }
        Ok(())
    }
}

/// Why a policy cannot be kept exactly in doubles and microseconds, as on Redis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// It counts too far.
    #[error("{0} is more than Redis counts exactly, which is 9007199254740991")]
    Count(u64),
    /// Its window is not whole microseconds.
    #[error("Redis's clock shows microseconds, so a window has a whole number of them")]
    Window,
    /// Its rate is too odd.
    #[error("this rate cannot be kept exactly on Redis; use a rounder count, or a shorter window")]
    Rate,
    /// It takes too long to fill.
    #[error("this burst takes more than 100 years to come back, which Redis cannot keep exactly")]
    Depth,
}
