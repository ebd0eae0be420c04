//! A named quota and the algorithm that enforces it.

mod consistency;
mod error;
mod kind;
mod part;

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

pub use consistency::{Consistency, ParseConsistencyError};
pub use error::PolicyError;
pub use kind::{Algorithm, ParseAlgorithmError};
use part::WHOLE;

use crate::algorithm::Engine;
use crate::memory::Home;
use crate::memory::sync::Once;
use crate::{Quota, Rate, Timestamp, Window, Zone};

/// The most a sliding log may count, because it remembers each admission.
pub const SLIDING_LOG_MAX: u64 = 10_000;

const NAME_MAX: usize = 256;

/// A named quota and the algorithm that enforces it. Clones are cheap and the same policy.
///
/// ```
/// use dashpot::{Algorithm, Policy, Quota};
///
/// let api = Policy::new("api", Quota::per_second(10).burst(20))?;
/// let login = Policy::builder("login", "5/5min".parse()?)
///     .algorithm(Algorithm::SlidingLog)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Policy(Arc<Inner>);

struct Inner {
    definition: Arc<Definition>,
    /// Where the first store in memory that was asked about it keeps its keys.
    home: Once<Home>,
}

/// What a policy says, as written and ready to run.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) written: PolicyBuilder,
    pub(crate) engine: Engine,
    /// A hash of what [`same_counters`](Self::same_counters) compares.
    pub(crate) identity_hash: u64,
}

impl Definition {
    /// Whether the two count the same thing, be it up to different limits.
    pub(crate) fn same_counters(&self, other: &Self) -> bool {
        self.written.identity() == other.written.identity()
    }

    /// Whether the two are the same.
    pub(crate) fn same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.written == other.written
    }

    /// Whether state kept under one is right under the other as it is.
    pub(crate) fn keeps_alike(&self, other: &Self) -> bool {
        let tells_time_alike = || {
            let grains = |one: &Self| one.engine.rate().map(|rate| rate.units);
            self.written.any_window && self.same_counters(other) && grains(self) == grains(other)
        };
        self.same(other) || tells_time_alike() || self.is_other_part(other)
    }
}

impl Policy {
    /// The quota under its [natural](Algorithm::natural) algorithm.
    ///
    /// # Errors
    /// If the name is empty, overlong or has control characters.
    pub fn new(name: impl Into<String>, quota: Quota) -> Result<Self, PolicyError> {
        Self::builder(name, quota).build()
    }

    /// A policy for a limiter that shares its store with nobody. Nothing about it can be wrong.
    pub(crate) fn unnamed(quota: Quota) -> Self {
        Self::builder("default", quota).compile()
    }

    /// Starts a policy with an algorithm of your choice.
    pub fn builder(name: impl Into<String>, quota: Quota) -> PolicyBuilder {
        PolicyBuilder {
            name: name.into(),
            quota,
            algorithm: Algorithm::natural(quota),
            queue: None,
            undelayed: None,
            zone: Zone::UTC,
            any_window: false,
            consistency: Consistency::Exact,
            percent: WHOLE,
        }
    }

    /// The name, which is its identity.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.definition.written.name
    }

    /// The quota.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.0.definition.written.quota
    }

    /// The algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.0.definition.written.algorithm
    }

    /// The places in a leaky bucket's queue, if it has one.
    #[must_use]
    pub fn queue(&self) -> Option<u64> {
        self.0.definition.written.queue
    }

    /// How many of the queue's places proceed at once.
    #[must_use]
    pub fn undelayed(&self) -> u64 {
        self.0.definition.written.undelayed.unwrap_or(0)
    }

    /// The time zone of a fixed window.
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.0.definition.written.zone
    }

    /// Whether [its window may change](PolicyBuilder::any_window).
    #[must_use]
    pub fn is_any_window(&self) -> bool {
        self.0.definition.written.any_window
    }

    /// How closely instances that share a store keep to it.
    #[must_use]
    #[inline]
    pub fn consistency(&self) -> Consistency {
        self.0.definition.written.consistency
    }

    /// The most it grants at one instant: a bucket's capacity, a window's count.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.0.definition.written.limit()
    }

    /// The rate of a bucket, in lowest terms; others have none.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.definition().engine.rate()
    }

    /// What so many units cost of a bucket's time, in grains: there are as many in a nanosecond as its [rate](Self::rate) has units. Taken together
    /// they cost no more than one by one. For stores that keep time themselves.
    #[must_use]
    pub fn grains(&self, units: u64) -> u128 {
        self.definition().engine.grains(units)
    }

    /// What so many units are worth that are given back, in grains.
    #[must_use]
    pub fn worth(&self, units: u64) -> u128 {
        self.definition().engine.worth(units)
    }

    /// How far ahead of now a bucket's time may be, in [grains](Self::grains).
    #[must_use]
    pub fn depth(&self) -> u128 {
        self.definition().engine.depth()
    }

    /// The rate by which what a bucket has counted is carried over if the policy changes: its own, so that as
    /// many units stay used. If [its window may change](PolicyBuilder::any_window), one whose unit takes a nanosecond, so
    /// that time stays what it is.
    #[must_use]
    pub fn carried_rate(&self) -> Option<Rate> {
        let rate = self.rate()?;
        Some(if self.is_any_window() { Rate { nanos: rate.units, ..rate } } else { rate })
    }

    /// Under a fixed window, the window that holds this moment, in nanoseconds since the epoch.
    #[must_use]
    pub fn window_at(&self, at: Timestamp) -> Option<Range<u64>> {
        self.definition().engine.window_at(at)
    }

    /// Whether the two count the same thing, be it up to different limits.
    #[must_use]
    pub fn same_counters(&self, other: &Self) -> bool {
        self.definition().same_counters(other.definition())
    }

    /// Which of two that count the same thing is the stricter, by which a call is judged that asks about both: the one that
    /// grants less at one instant, or as much and then less in the long run.
    ///
    /// If [any window](PolicyBuilder::any_window) will do, a unit takes longer under one than under the other. Then it
    /// is the slower, and what it grants must pass under [each](crate::KeyState::and_under).
    #[must_use]
    pub fn stricter<'p>(&'p self, other: &'p Self) -> &'p Self {
        let grants = |policy: &Self| (policy.limit(), policy.quota().count(), policy.percent());
        let of_two = match (self.rate(), other.rate()) {
            (Some(ours), Some(theirs)) if self.is_any_window() => {
                theirs.slowness(ours).then_with(|| other.limit().cmp(&self.limit()))
            }
            _ => grants(other).cmp(&grants(self)),
        };
        if of_two.is_lt() { other } else { self }
    }

    /// One part of this policy in so many: what each of several instances may grant on its own. No
    /// part is less than one, unless the whole is nothing.
    #[must_use]
    pub fn share(&self, parts: NonZeroU64) -> Self {
        let part = |count: u64| if count == 0 { 0 } else { (count / parts).max(1) };
        let mut written = self.0.definition.written.clone();
        written.quota = match (written.quota.count(), written.quota.window()) {
            (None, _) => return self.clone(),
            (Some(count), None) => Quota::concurrent(part(count)),
            (Some(count), Some(window)) => {
                let quota = Quota::new(part(count), window);
                match written.quota.explicit_burst() {
                    Some(burst) => quota.burst(part(burst)),
                    None => quota,
                }
            }
        };
        // One of the places is the one in service.
        written.queue = written.queue.map(|places| part(places.saturating_add(1)) - 1);
        written.undelayed = written.undelayed.min(written.queue);
        written.compile()
    }

    /// A policy as defined before.
    pub(crate) fn from_definition(definition: Arc<Definition>) -> Self {
        Self(Arc::new(Inner { definition, home: Once::new() }))
    }

    #[inline]
    pub(crate) fn definition(&self) -> &Arc<Definition> {
        &self.0.definition
    }

    #[inline]
    pub(crate) fn home(&self) -> &Once<Home> {
        &self.0.home
    }
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.definition().same(other.definition())
    }
}

impl Eq for Policy {}

impl Hash for Policy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.definition.written.hash(state);
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Policy({self})")
    }
}

/// `name: 10/s, leaky-bucket, queue 20, undelayed 5`.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, {}", self.name(), self.quota(), self.algorithm())?;
        if let Some(places) = self.queue() {
            write!(f, ", queue {places}")?;
        }
        if self.undelayed() > 0 {
            write!(f, ", undelayed {}", self.undelayed())?;
        }
        if !self.zone().is_utc() {
            write!(f, ", {}", self.zone())?;
        }
        if self.is_any_window() {
            f.write_str(", any window")?;
        }
        if self.consistency() != Consistency::Exact {
            write!(f, ", {}", self.consistency())?;
        }
        if self.percent() != WHOLE {
            write!(f, ", at {} %", self.percent())?;
        }
        Ok(())
    }
}

/// A [`Policy`] in the making.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct PolicyBuilder {
    name: String,
    pub(crate) quota: Quota,
    pub(crate) algorithm: Algorithm,
    pub(crate) queue: Option<u64>,
    pub(crate) undelayed: Option<u64>,
    pub(crate) zone: Zone,
    pub(crate) any_window: bool,
    pub(crate) consistency: Consistency,
    /// How much of it there is.
    pub(crate) percent: u8,
}

impl PolicyBuilder {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Enforces the quota by this algorithm.
    pub fn algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Gives a leaky bucket a queue of so many places.
    pub fn queue(mut self, places: u64) -> Self {
        self.queue = Some(places);
        self
    }

    /// Lets this many of the queue's places proceed at once: 0 shapes every request, the whole
    /// queue is nginx's `nodelay`, and in between is its `delay=`.
    pub fn undelayed(mut self, places: u64) -> Self {
        self.undelayed = Some(places);
        self
    }

    /// Starts a fixed window's days, weeks and months at midnight in this time zone instead of
    /// UTC.
    pub fn zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// Lets a bucket's window change, too: what was counted belongs to the name and the algorithm alone, for those
    /// whose limits come with every question. What stays then is not how much is used, but when the bucket will be
    /// full again, as with redis-cell.
    pub fn any_window(mut self) -> Self {
        self.any_window = true;
        self
    }

    /// Lets instances that share a store keep to it less closely than by asking every time.
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = consistency;
        self
    }

    /// The policy, if everything fits together.
    ///
    /// # Errors
    /// If it does not.
    pub fn build(self) -> Result<Policy, PolicyError> {
        self.validate()?;
        Ok(self.compile())
    }

    fn compile(self) -> Policy {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        let definition = Definition {
            engine: Engine::compile(&self),
            identity_hash: SEED.hash_one(self.identity()),
            written: self,
        };
        Policy::from_definition(Arc::new(definition))
    }

    fn validate(&self) -> Result<(), PolicyError> {
        let Self { quota, algorithm, .. } = *self;
        if self.name.is_empty() || self.name.len() > NAME_MAX {
            return Err(PolicyError::NameLength);
        }
        if self.name.chars().any(char::is_control) {
            return Err(PolicyError::NameCharacters);
        }
        if !quota.is_unlimited() && quota.is_concurrent() != (algorithm == Algorithm::Concurrency) {
            return Err(PolicyError::Form { quota, algorithm });
        }
        if quota.explicit_burst().is_some() {
            let bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket);
            if !bucket || self.queue.is_some() {
                return Err(PolicyError::Burst);
            }
        }
        if self.queue.is_some() && algorithm != Algorithm::LeakyBucket {
            return Err(PolicyError::Queue);
        }
        if self.undelayed > self.queue {
            return Err(PolicyError::Undelayed);
        }
        if algorithm == Algorithm::SlidingLog && quota.count() > Some(SLIDING_LOG_MAX) {
            return Err(PolicyError::LogTooLong);
        }
        if !self.zone.is_utc() {
            let calendar = quota.window().is_some_and(Window::is_calendar);
            if algorithm != Algorithm::FixedWindow || !calendar {
                return Err(PolicyError::Zone);
            }
        }
        if self.any_window {
            let bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket);
            if !bucket || quota.is_unlimited() || quota.count() == Some(0) {
                return Err(PolicyError::AnyWindow);
            }
        }
        if self.consistency != Consistency::Exact {
            let cannot = match algorithm {
                Algorithm::SlidingLog => Some("a sliding-log notes when each unit is taken"),
                Algorithm::Concurrency => Some("permits are counted one by one"),
                Algorithm::LeakyBucket if self.queue.is_some() => Some("a queue is one line"),
                _ if self.any_window => Some("any window is counted by what each question says"),
                _ => None,
            };
            if let Some(reason) = cannot {
                return Err(PolicyError::Consistency { consistency: self.consistency, reason });
            }
        }
        Ok(())
    }

    /// What the counters belong to. Without a limit nothing is counted, so there is nothing to go
    /// on with when one is set.
    fn identity(&self) -> (&str, Algorithm, bool, Option<Window>, &Zone) {
        let limited = !self.quota.is_unlimited();
        let window = self.quota.window().filter(|_| !self.any_window);
        (&self.name, self.algorithm, limited, window, &self.zone)
    }

    /// The most it grants at one instant.
    pub(crate) fn limit(&self) -> u64 {
        self.part_of(self.whole_limit())
    }

    pub(crate) fn whole_limit(&self) -> u64 {
        match self.queue {
            // The one in service has a place too; a bucket that never drains holds nothing.
            Some(places) if self.quota.count() > Some(0) => places.saturating_add(1),
            _ => self.quota.capacity(),
        }
    }
}
