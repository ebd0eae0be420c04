//! What is left of a server's quotas, as far as its answers and the calls on their way tell.

use std::time::Duration;

use dashpot::{Percent, Timestamp};

use crate::chance::Chance;
use crate::told::{Allowance, Refill, Unit};

/// More quotas than this nobody tells of.
const MOST: usize = 16;

/// What a call takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Takes {
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
}

impl Takes {
    pub(crate) fn add(&mut self, other: Self) {
        self.requests = self.requests.wrapping_add(other.requests);
        self.tokens = self.tokens.wrapping_add(other.tokens);
    }

    /// What was counted since, of numbers that only grow.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests.wrapping_sub(earlier.requests),
            tokens: self.tokens.wrapping_sub(earlier.tokens),
        }
    }

    const fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Tokens => self.tokens,
            Unit::Other => 0,
        }
    }

    /// What has to be there before it may go: something of everything.
    const fn needs(self, unit: Unit) -> u64 {
        match self.of(unit) {
            0 => 1,
            some => some,
        }
    }
}

/// How to go on when little is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thrift {
    /// Calls are spread over the time until there is more when less than this is left.
    pub(crate) below: Percent,
    /// But none waits longer than this for it.
    pub(crate) at_most: Duration,
}

/// When a call may go by what was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    Now,
    /// Then: there is not enough before.
    At(Timestamp),
    /// Then, to make what is left last. It could go now.
    Rather(Timestamp),
    /// When an answer tells more.
    WhenAnswered,
}

/// All quotas that a server told of.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    quotas: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    name: Box<str>,
    unit: Unit,
    limit: Option<u64>,
    /// How much is left, at least, if nobody else uses it: of what was there at `at`.
    left: u64,
    at: Timestamp,
    /// When there is more; unknown from then on, until an answer tells.
    reset: Option<Timestamp>,
    /// The longest time until then that was told.
    window: Duration,
    refill: Refill,
    /// Whether there is more by now, nobody knows how much: one goes, and its answer will tell.
    is_unseen: bool,
}

impl Learned {
    /// Takes in what an answer tells. `overlapping` is what other calls take that were on their way at the same time: it may
    /// have been counted before this, or after.
    pub(crate) fn learn(
        &mut self,
        told: &Allowance,
        overlapping: Takes,
        chance: &Chance,
        now: Timestamp,
    ) {
        let Some(remaining) = told.remaining else { return };
        let least = remaining.saturating_sub(overlapping.of(told.unit));
        let mut known = Known {
            name: told.name.clone(),
            unit: told.unit,
            limit: told.limit,
            left: least,
            at: now,
            reset: None,
            window: told.reset_after.unwrap_or_default(),
            refill: told.refill,
            is_unseen: false,
        };
        let old = self.quotas.iter().position(|quota| quota.name == told.name);
        if let Some(old) = old.map(|old| self.quotas.swap_remove(old)) {
            // What was known holds as far as the answer allows.
            known.left = old.left_at(now).clamp(least, remaining);
            known.limit = known.limit.or(old.limit);
            known.window = known.window.max(old.window);
        }
        known.reset = told.reset_after.map(|wait| match told.refill {
            // All who use it were told the same moment.
            Refill::AtOnce => now.after(wait).after(chance.late(known.window)),
            Refill::Steadily => now.after(wait),
        });
        if self.quotas.len() < MOST {
            self.quotas.push(known);
        }
    }

    /// When a call that takes so much may go.
    pub(crate) fn ready(
        &mut self,
        takes: Takes,
        now: Timestamp,
        last: Option<Timestamp>,
        thrift: Thrift,
    ) -> Ready {
        let mut ready = Ready::Now;
        for known in &mut self.quotas {
            known.renew(now);
            ready = ready.later(known.ready(takes, now));
        }
        if ready != Ready::Now {
            return ready;
        }
        let gaps = self.quotas.iter().filter_map(|known| known.gap(now, thrift));
        let rather = last.zip(gaps.max()).map(|(last, gap)| last.after(gap));
        rather.filter(|at| *at > now).map_or(Ready::Now, Ready::Rather)
    }

    /// Notes that a call goes.
    pub(crate) fn take(&mut self, takes: Takes, now: Timestamp) {
        for known in &mut self.quotas {
            known.left = match known.is_unseen {
                true => 0,
                false => known.left_at(now).saturating_sub(takes.of(known.unit)),
            };
            known.is_unseen = false;
            known.at = now;
        }
    }

    /// Forgets those of which nobody knows when there is more, since nothing is on its way that could tell.
    pub(crate) fn forget_unknown(&mut self) {
        self.quotas.retain(|known| known.reset.is_some() || known.is_unseen);
    }

    /// Whether there is nothing that still counts.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.quotas.iter().all(|known| known.reset.is_none_or(|reset| reset <= now))
    }
}

impl Known {
    /// Begins anew, if its time is over.
    fn renew(&mut self, now: Timestamp) {
        if self.reset.is_some_and(|reset| reset <= now) {
            self.left = self.limit.unwrap_or(u64::MAX);
            self.at = now;
            self.reset = None;
            // "More" may be one, or all there is.
            self.is_unseen = self.refill == Refill::AtOnce;
        }
    }

    /// How much is left then.
    fn left_at(&self, now: Timestamp) -> u64 {
        let (Refill::Steadily, Some(limit), Some(reset)) = (self.refill, self.limit, self.reset)
        else {
            return self.left;
        };
        let missing = u128::from(limit.saturating_sub(self.left));
        let (whole, gone) = (reset.since(self.at).as_nanos(), now.since(self.at).as_nanos());
        if gone >= whole {
            return self.left.max(limit);
        }
        let back = missing.saturating_mul(gone) / whole.max(1);
        self.left.saturating_add(u64::try_from(back).unwrap_or(u64::MAX))
    }

    fn ready(&self, takes: Takes, now: Timestamp) -> Ready {
        let needs = takes.needs(self.unit);
        // What is more than there ever is waits until all is there.
        let needs = self.limit.map_or(needs, |limit| needs.min(limit.max(1)));
        if self.is_unseen || self.left_at(now) >= needs {
            return Ready::Now;
        }
        let Some(reset) = self.reset else { return Ready::WhenAnswered };
        match self.time_of_one() {
            Some(nanos) => {
                let needs = u128::from(needs.saturating_sub(self.left));
                let wait = u64::try_from(needs.saturating_mul(nanos)).unwrap_or(u64::MAX);
                Ready::At(self.at.after(Duration::from_nanos(wait)).min(reset))
            }
            None => Ready::At(reset),
        }
    }

    /// How long one more takes, of what comes bit by bit.
    fn time_of_one(&self) -> Option<u128> {
        let (limit, reset) = (self.limit?, self.reset?);
        let missing = u128::from(limit.saturating_sub(self.left));
        let is_so = self.refill == Refill::Steadily && missing > 0;
        is_so.then(|| reset.since(self.at).as_nanos().div_ceil(missing))
    }

    /// How far apart calls are to be so that what is left lasts, if it is little.
    fn gap(&self, now: Timestamp, thrift: Thrift) -> Option<Duration> {
        let (limit, left) = (self.limit?, self.left_at(now));
        if self.unit != Unit::Requests || self.is_unseen || left >= thrift.below.part_of(limit) {
            return None;
        }
        let nanos = match self.time_of_one() {
            Some(nanos) => nanos,
            None => self.reset?.since(now).as_nanos() / u128::from(left.max(1)),
        };
        let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Some(gap.min(thrift.at_most))
    }
}

impl Ready {
    /// When both are.
    fn later(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(one), Self::At(other)) => Self::At(one.max(other)),
            (Self::At(at), _) | (_, Self::At(at)) => Self::At(at),
            (Self::WhenAnswered, _) | (_, Self::WhenAnswered) => Self::WhenAnswered,
            _ => Self::Now,
        }
    }
}
