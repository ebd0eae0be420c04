//! The algorithms: pure, whole numbers only, no clock inside.
//!
//! Each is a value made from a policy, with functions from a key's state and `now` to a verdict
//! and a next state. A store brings the state, the clock and the atomicity.

mod calendar;
mod concurrency;
mod elsewhere;
mod fixed_window;
mod leaky_bucket;
mod sliding_log;
mod sliding_window;
mod token_bucket;

use smallvec::SmallVec;

use crate::policy::PolicyBuilder;
use crate::{Algorithm, Retry, Standing, Timestamp};

use concurrency::Concurrency;
use fixed_window::FixedWindow;
use leaky_bucket::LeakyBucket;
use sliding_log::SlidingLog;
use sliding_window::SlidingWindow;
pub(crate) use token_bucket::Short;
use token_bucket::TokenBucket;

/// What an algorithm says to a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It passes, to proceed after so many nanoseconds.
    Allow { delay: u64 },
    /// It does not.
    Deny(Retry),
}

impl Verdict {
    pub(crate) const ALLOW: Self = Self::Allow { delay: 0 };

    /// What two say together: it passes if both say so, after the longer of the two waits.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Allow { delay: one }, Self::Allow { delay: other }) => {
                Self::Allow { delay: one.max(other) }
            }
            (Self::Deny(one), Self::Deny(other)) => Self::Deny(one.longest(other)),
            (denied @ Self::Deny(_), _) | (_, denied @ Self::Deny(_)) => denied,
        }
    }
}

/// What every algorithm can do. Costs here are at least 1 and at most the limit: peeks and what
/// can never pass are dealt with before.
trait Enforce {
    /// What is remembered of a key; its default is a fresh one.
    type State: Packed;

    /// Says whether the cost passes. Changes nothing.
    fn verdict(&self, state: &Self::State, now: u64, cost: u64) -> Verdict;

    /// Takes units, whether they fit or not.
    fn charge(&self, state: &mut Self::State, now: u64, units: u64);

    /// Gives back units that were taken at `charged_at`.
    fn credit(&self, state: &mut Self::State, now: u64, charged_at: u64, units: u64);

    /// Gives back units that were taken at `charged_at` and not used, so that no interval holds too much: for most, all of them.
    fn undo(&self, state: &mut Self::State, now: u64, charged_at: u64, units: u64) {
        self.credit(state, now, charged_at, units);
    }

    /// How much could be taken at this instant.
    fn remaining(&self, state: &Self::State, now: u64) -> u64;

    /// Nanoseconds until the key is as good as fresh.
    fn reset_after(&self, state: &Self::State, now: u64) -> u64;

    /// Whether it can be forgotten without anybody noticing.
    fn is_idle(&self, state: &Self::State, now: u64) -> bool;
}

/// State as a few whole words, for stores that keep millions of them.
///
/// A fresh state is all zeros. With fewer words than a state may need, some do not fit; they are the
/// exceptions that a store keeps elsewhere.
trait Packed: Default {
    /// Writes it; false if it does not fit, and then the words mean nothing.
    fn pack(&self, words: &mut [u64]) -> bool;

    /// Reads it back.
    fn unpack(words: &[u64]) -> Self;
}

/// What came of a cost, and how the key stands afterwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) standing: Standing,
}

impl Judged {
    /// Of nothing.
    pub(crate) const NONE: Self = Self {
        verdict: Verdict::ALLOW,
        standing: Standing {
            limit: 0,
            remaining: 0,
            reset_after_nanos: 0,
            available_after_nanos: None,
        },
    };

    #[inline]
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow { .. })
    }
}

/// A policy's algorithm, ready to run.
#[derive(Debug)]
pub(crate) struct Engine {
    limit: u64,
    /// What the limit would be, were the policy not reduced.
    whole_limit: u64,
    method: Method,
}

#[derive(Debug)]
enum Method {
    Unlimited,
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    FixedWindow(FixedWindow),
    SlidingLog(SlidingLog),
    SlidingWindow(SlidingWindow),
    Concurrency(Concurrency),
}

/// What is remembered of one key, by whichever algorithm.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Unlimited,
    Bucket(token_bucket::Tat),
    FixedWindow(fixed_window::Count),
    SlidingLog(sliding_log::Log),
    SlidingWindow(sliding_window::Counts),
    Concurrency(concurrency::InFlight),
}

impl State {
    /// Whether it takes a few words, and no more.
    pub(crate) fn is_small(&self) -> bool {
        match self {
            Self::SlidingLog(log) => log.is_small(),
            _ => true,
        }
    }

    /// The same in few words; stricter, if that is not all there is to it.
    pub(crate) fn coarse(&self) -> Self {
        match self {
            Self::SlidingLog(log) => Self::SlidingLog(log.coarse()),
            _ => self.clone(),
        }
    }
}

/// Runs `$body` with the algorithm and its own kind of state, and `$otherwise` without a limit.
///
/// The two always belong together: a key's counters are found by its policy's algorithm among
/// others, and [`Engine::fresh`] makes them. Were they ever mixed up, `$otherwise` must be safe.
macro_rules! with {
    ($engine:expr, $state:expr, |$method:ident, $inner:ident| $body:expr, $otherwise:expr) => {
        match (&$engine.method, $state) {
            (Method::TokenBucket($method), State::Bucket($inner)) => $body,
            (Method::LeakyBucket($method), State::Bucket($inner)) => $body,
            (Method::FixedWindow($method), State::FixedWindow($inner)) => $body,
            (Method::SlidingLog($method), State::SlidingLog($inner)) => $body,
            (Method::SlidingWindow($method), State::SlidingWindow($inner)) => $body,
            (Method::Concurrency($method), State::Concurrency($inner)) => $body,
            _ => $otherwise,
        }
    };
}

impl Engine {
    pub(crate) fn compile(written: &PolicyBuilder) -> Self {
        let (quota, limit) = (written.quota, written.limit());
        let method = match (quota.count(), quota.window(), written.algorithm) {
            (None, _, _) => Method::Unlimited,
            (Some(_), None, _) | (_, _, Algorithm::Concurrency) => {
                Method::Concurrency(Concurrency { limit })
            }
            (Some(count), Some(window), Algorithm::TokenBucket) => {
                let bucket = TokenBucket::new(count, window, written.whole_limit());
                let bucket = bucket.reduced_to(written.percent, limit);
                Method::TokenBucket(bucket.carrying_time(written.any_window))
            }
            (Some(count), Some(window), Algorithm::LeakyBucket) => {
                let meter = TokenBucket::new(count, window, written.whole_limit());
                let meter = meter.reduced_to(written.percent, limit);
                let meter = meter.carrying_time(written.any_window);
                let undelayed = written.queue.map(|_| written.undelayed.unwrap_or(0));
                Method::LeakyBucket(LeakyBucket { meter, undelayed })
            }
            (_, Some(window), Algorithm::FixedWindow) => {
                Method::FixedWindow(FixedWindow::new(limit, window, &written.zone))
            }
            (_, Some(window), Algorithm::SlidingLog) => {
                let window = window.nanos();
                Method::SlidingLog(SlidingLog { limit, window })
            }
            (_, Some(window), Algorithm::SlidingWindow) => {
                let window = window.nanos();
                Method::SlidingWindow(SlidingWindow { limit, window })
            }
        };
        Self { limit, whole_limit: written.whole_limit(), method }
    }

    /// The state of a key nobody has asked about.
    pub(crate) fn fresh(&self) -> State {
        match self.method {
            Method::Unlimited => State::Unlimited,
            Method::TokenBucket(_) | Method::LeakyBucket(_) => State::Bucket(Default::default()),
            Method::FixedWindow(_) => State::FixedWindow(Default::default()),
            Method::SlidingLog(_) => State::SlidingLog(Default::default()),
            Method::SlidingWindow(_) => State::SlidingWindow(Default::default()),
            Method::Concurrency(_) => State::Concurrency(Default::default()),
        }
    }

    /// The state of a key whose counts were forgotten now.
    pub(crate) fn reset(&self, now: Timestamp) -> State {
        match self.method {
            Method::Concurrency(_) => {
                State::Concurrency(concurrency::InFlight::forgotten_at(now.as_nanos()))
            }
            _ => self.fresh(),
        }
    }

    /// How many words a packed state needs: so many that all but the oddest fit.
    pub(crate) fn words(&self) -> usize {
        match &self.method {
            Method::Unlimited => 1,
            Method::TokenBucket(bucket) => bucket.words(),
            Method::LeakyBucket(bucket) => bucket.meter.words(),
            Method::SlidingWindow(window) => window.words(),
            Method::FixedWindow(_) | Method::SlidingLog(_) | Method::Concurrency(_) => 2,
        }
    }

    /// Writes a state; false if it does not fit.
    pub(crate) fn pack(&self, state: &State, words: &mut [u64]) -> bool {
        words.fill(0);
        with!(self, state, |_method, state| state.pack(words), true)
    }

    /// Reads a state that was written.
    pub(crate) fn unpack(&self, words: &[u64]) -> State {
        match self.method {
            Method::Unlimited => State::Unlimited,
            Method::TokenBucket(_) | Method::LeakyBucket(_) => State::Bucket(Packed::unpack(words)),
            Method::FixedWindow(_) => State::FixedWindow(Packed::unpack(words)),
            Method::SlidingLog(_) => State::SlidingLog(Packed::unpack(words)),
            Method::SlidingWindow(_) => State::SlidingWindow(Packed::unpack(words)),
            Method::Concurrency(_) => State::Concurrency(Packed::unpack(words)),
        }
    }

    /// The algorithm in short, if it is what nearly everybody has.
    pub(crate) fn short(&self) -> Option<Short> {
        match &self.method {
            Method::TokenBucket(bucket) => bucket.short(),
            _ => None,
        }
    }

    /// Everything there is to a state, in as many words as it takes.
    pub(crate) fn save(&self, state: &State) -> SmallVec<[u64; 3]> {
        match state {
            State::SlidingLog(log) => log.save(),
            // Those who hold permits end with the process.
            State::Unlimited | State::Concurrency(_) => SmallVec::new(),
            _ => {
                let mut words = [0; 3];
                let _ = self.pack(state, &mut words); // In so many words everything fits.
                words.into()
            }
        }
    }

    /// A state that was saved; `None` if it cannot be one of this algorithm.
    pub(crate) fn restore(&self, words: &[u64]) -> Option<State> {
        let is_moment =
            |word: Option<&u64>| word.is_some_and(|&at| at <= Timestamp::MAX.as_nanos());
        let is_sane = match &self.method {
            Method::Unlimited | Method::Concurrency(_) => words.is_empty(),
            Method::SlidingLog(_) => {
                return sliding_log::Log::restore(words).map(State::SlidingLog);
            }
            Method::TokenBucket(_) | Method::LeakyBucket(_) => words.len() == 3,
            Method::FixedWindow(_) => words.len() == 3 && is_moment(words.first()),
            Method::SlidingWindow(method) => {
                words.len() == 3 && is_moment(words.first()) && method.is_start(words.first())
            }
        };
        is_sane.then(|| self.unpack(words))
    }

    /// Verdict, charge and standing in one, on packed state: takes the cost if it passes. `None` if
    /// the state cannot be packed any more, and then the words mean nothing.
    #[inline(never)]
    pub(crate) fn judge(&self, words: &mut [u64], now: Timestamp, cost: u64) -> Option<Judged> {
        match &self.method {
            Method::TokenBucket(method) => self.judge_by(method, words, now, cost),
            Method::LeakyBucket(method) => self.judge_by(method, words, now, cost),
            Method::FixedWindow(method) => self.judge_by(method, words, now, cost),
            Method::SlidingWindow(method) => self.judge_by(method, words, now, cost),
            Method::SlidingLog(method) => self.judge_by(method, words, now, cost),
            Method::Concurrency(method) => self.judge_by(method, words, now, cost),
            Method::Unlimited => None,
        }
    }

    fn judge_by<E: Enforce>(
        &self,
        method: &E,
        words: &mut [u64],
        now: Timestamp,
        cost: u64,
    ) -> Option<Judged> {
        let mut state = E::State::unpack(words);
        let now = now.as_nanos();
        let verdict = self.verdict_by(method, &state, now, cost);
        if cost > 0 && matches!(verdict, Verdict::Allow { .. }) {
            method.charge(&mut state, now, cost);
            if !state.pack(words) {
                return None;
            }
        }
        Some(Judged { verdict, standing: self.standing_by(method, &state, now) })
    }

    #[inline]
    fn verdict_by<E: Enforce>(&self, method: &E, state: &E::State, now: u64, cost: u64) -> Verdict {
        match cost {
            0 => Verdict::ALLOW,
            _ if cost > self.limit => Verdict::Deny(self.beyond(cost)),
            _ => method.verdict(state, now, cost),
        }
    }

    /// When more than the limit would pass: never, or when the policy is whole again, which nobody knows.
    #[cold]
    fn beyond(&self, cost: u64) -> Retry {
        if cost > self.whole_limit { Retry::Never } else { Retry::Unknown }
    }

    #[inline]
    fn standing_by<E: Enforce>(&self, method: &E, state: &E::State, now: u64) -> Standing {
        let remaining = method.remaining(state, now);
        let available_after_nanos = match remaining {
            0 => match self.verdict_by(method, state, now, 1) {
                Verdict::Allow { .. } => Some(0),
                Verdict::Deny(Retry::After(wait)) => Some(wait),
                Verdict::Deny(Retry::Unknown | Retry::Never) => None,
            },
            _ => Some(0),
        };
        Standing {
            limit: self.limit,
            remaining,
            reset_after_nanos: method.reset_after(state, now),
            available_after_nanos,
        }
    }

    /// Says whether the cost passes. Changes nothing.
    pub(crate) fn verdict(&self, state: &State, now: Timestamp, cost: u64) -> Verdict {
        let now = now.as_nanos();
        with!(
            self,
            state,
            |method, state| self.verdict_by(method, state, now, cost),
            Verdict::ALLOW
        )
    }

    /// Takes units, whether they fit or not.
    pub(crate) fn charge(&self, state: &mut State, now: Timestamp, units: u64) {
        if units > 0 {
            with!(self, state, |method, state| method.charge(state, now.as_nanos(), units), ());
        }
    }

    /// Charges `used` in the place of the `cost` that was taken at `charged_at`.
    pub(crate) fn settle(
        &self,
        state: &mut State,
        now: Timestamp,
        charged_at: Timestamp,
        cost: u64,
        used: u64,
    ) {
        let (unused, excess) = match self.method {
            // Whatever was done under a permit, it is over.
            Method::Concurrency(_) => (cost, 0),
            _ => (cost.saturating_sub(used), used.saturating_sub(cost)),
        };
        if unused > 0 {
            let (now, charged_at) = (now.as_nanos(), charged_at.as_nanos());
            with!(
                self,
                &mut *state,
                |method, state| method.credit(state, now, charged_at, unused),
                ()
            );
        }
        self.charge(state, now, excess);
    }

    /// Gives back what is left of the `cost` that was taken at `charged_at` and not used.
    pub(crate) fn undo(&self, state: &mut State, now: Timestamp, charged_at: Timestamp, cost: u64) {
        if cost > 0 {
            let (now, charged_at) = (now.as_nanos(), charged_at.as_nanos());
            with!(self, state, |method, state| method.undo(state, now, charged_at, cost), ());
        }
    }

    /// How the key stands.
    pub(crate) fn standing(&self, state: &State, now: Timestamp) -> Standing {
        let now = now.as_nanos();
        let unlimited = Standing {
            limit: self.limit,
            remaining: self.limit,
            reset_after_nanos: 0,
            available_after_nanos: Some(0),
        };
        with!(self, state, |method, state| self.standing_by(method, state, now), unlimited)
    }

    /// Whether the state can be forgotten without anybody noticing.
    pub(crate) fn is_idle(&self, state: &State, now: Timestamp) -> bool {
        with!(self, state, |method, state| method.is_idle(state, now.as_nanos()), true)
    }

    /// Carries state over from the engine of a policy with the same counters but another limit:
    /// the units used stay used; under any window, the time it takes until none are.
    pub(crate) fn adopt(&self, old: &Self, state: &mut State, now: Timestamp) {
        if let (Some(new), Some(old), State::Bucket(tat)) = (self.bucket(), old.bucket(), state) {
            new.adopt(old, tat, now.as_nanos());
        }
        // The others remember units, which are the same under any limit.
    }

    /// Takes what another state of this engine has used, too, and no less. Permits are left out.
    pub(crate) fn join(&self, state: &mut State, other: &State, now: Timestamp) {
        let units = match other {
            State::Bucket(other) => {
                if let (Some(bucket), State::Bucket(tat)) = (self.bucket(), state) {
                    bucket.join(tat, other, now.as_nanos());
                }
                return;
            }
            State::FixedWindow(count) => count.units(),
            State::SlidingWindow(counts) => counts.units(),
            State::SlidingLog(log) => log.units(),
            State::Unlimited | State::Concurrency(_) => 0,
        };
        self.charge(state, now, units);
    }

    fn bucket(&self) -> Option<&TokenBucket> {
        match &self.method {
            Method::TokenBucket(bucket) => Some(bucket),
            Method::LeakyBucket(bucket) => Some(&bucket.meter),
            _ => None,
        }
    }
}
