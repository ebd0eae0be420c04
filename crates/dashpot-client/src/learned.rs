//! What is left of a server's quotas, as far as its answers and the calls on their way tell.

use std::time::Duration;

use dashpot::{Percent, Timestamp};

use crate::chance::Chance;
use crate::told::{Allowance, Refill, Unit};

/// More quotas than this nobody tells of.
const MOST: usize = 16;

/// A time of whole seconds below this may be much too long or too short.
const ROUGH: Duration = Duration::from_secs(5);

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
    /// How much was left at `at`, at least, if nobody else uses it.
    left: u64,
    at: Timestamp,
    more: More,
}

/// How more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    /// At that moment, nobody knows how much.
    At(Timestamp),
    /// One after each such time, in nanoseconds.
    Every(u64),
    /// It came: one goes, and its answer will tell how much.
    Unseen,
    /// Nobody knows.
    Unknown,
}

impl Learned {
    /// Takes in what an answer tells. `overlapping` is what other calls take that were on their way at the same time: it may
    /// have been counted before this, or after. No wait longer than `longest` is believed.
    pub(crate) fn learn(
        &mut self,
        told: &Allowance,
        overlapping: Takes,
        (chance, longest): (&Chance, Duration),
        now: Timestamp,
    ) {
        let Some(remaining) = told.remaining else { return };
        let old = self.quotas.iter().position(|quota| quota.name == told.name);
        let old = old.map(|old| self.quotas.swap_remove(old));
        let least = remaining.saturating_sub(overlapping.of(told.unit));
        // What was known holds as far as the answer allows.
        let left = old.as_ref().map_or(least, |old| old.left_at(now).clamp(least, remaining));
        let limit = told.limit.or(old.as_ref().and_then(|old| old.limit));
        let wait = told.reset_after.map(|wait| wait.min(longest));
        let more = match (told.refill, limit, wait) {
            (Refill::Steadily, Some(limit), Some(wait)) => {
                match (every(limit, remaining, wait), old.map(|old| old.more)) {
                    (Some(every), _) | (None, Some(More::Every(every))) => More::Every(every),
                    _ => More::Unknown,
                }
            }
            (_, _, Some(wait)) => {
                // All who use it were told the same moment.
                More::At(now.after(wait).after(chance.late(wait)))
            }
            (.., None) => More::Unknown,
        };
        if self.quotas.len() < MOST {
            let (name, unit) = (told.name.clone(), told.unit);
            self.quotas.push(Known { name, unit, limit, left, at: now, more });
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
            let needs = known.needs(takes);
            known.renew(needs, now);
            ready = ready.later(known.ready(needs, now));
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
            known.take(takes.of(known.unit), now);
        }
    }

    /// Forgets those of which nobody knows when there is more, and of which an answer did not tell that could have: its
    /// call was sent since then.
    pub(crate) fn forget_untold(&mut self, told: &[Allowance], sent_at: Timestamp) {
        self.quotas.retain(|known| {
            let is_told = told.iter().any(|told| told.name == known.name);
            known.more != More::Unknown || is_told || sent_at < known.at
        });
    }

    /// No answer is to come that could tell when there is more: if there is not enough for a call, it goes to see.
    pub(crate) fn nothing_is_on_its_way(&mut self, takes: Takes) {
        for known in &mut self.quotas {
            if known.more == More::Unknown && known.left < known.needs(takes) {
                known.more = More::Unseen;
            }
        }
    }

    /// Whether there is nothing that still counts.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.quotas.iter().all(|known| match known.more {
            More::At(reset) => reset <= now,
            More::Every(_) => known.limit.is_some_and(|limit| known.left_at(now) >= limit),
            More::Unseen | More::Unknown => true,
        })
    }
}

impl Known {
    /// How much of it has to be there for a call. What is more than there ever is waits until all is there.
    fn needs(&self, takes: Takes) -> u64 {
        let needs = takes.needs(self.unit);
        self.limit.map_or(needs, |limit| needs.min(limit.max(1)))
    }

    /// Begins anew, if its time is over.
    fn renew(&mut self, needs: u64, now: Timestamp) {
        if matches!(self.more, More::At(reset) if reset <= now) {
            self.at = now;
            // "More" may be one, or all there is. What was left is there in any case.
            self.more = if self.left < needs { More::Unseen } else { More::Unknown };
        }
    }

    /// How much is left then.
    fn left_at(&self, now: Timestamp) -> u64 {
        let More::Every(every) = self.more else { return self.left };
        let back = now.since(self.at).as_nanos() / u128::from(every.max(1));
        // At least one: who waits for that would wait for ever.
        let full = self.limit.unwrap_or(u64::MAX).max(self.left).max(1);
        self.left.saturating_add(u64::try_from(back).unwrap_or(u64::MAX)).min(full)
    }

    fn take(&mut self, units: u64, now: Timestamp) {
        match self.more {
            More::Every(every) => {
                let left = self.left_at(now);
                // The part of one that has come since stays, but for who is full.
                let back = Duration::from_nanos(every.saturating_mul(left - self.left));
                let is_full = self.limit.is_some_and(|limit| left >= limit);
                self.at = if is_full { now } else { self.at.after(back) };
                self.left = left.saturating_sub(units);
            }
            More::Unseen => {
                self.more = More::Unknown;
                self.left = 0;
            }
            More::At(_) | More::Unknown => self.left = self.left.saturating_sub(units),
        }
    }

    fn ready(&self, needs: u64, now: Timestamp) -> Ready {
        if self.more == More::Unseen || self.left_at(now) >= needs {
            return Ready::Now;
        }
        match self.more {
            More::At(reset) => Ready::At(reset),
            More::Every(every) => {
                let wait = every.saturating_mul(needs.saturating_sub(self.left));
                Ready::At(self.at.after(Duration::from_nanos(wait)))
            }
            More::Unseen | More::Unknown => Ready::WhenAnswered,
        }
    }

    /// How far apart calls are to be so that what is left lasts, if it is little.
    fn gap(&self, now: Timestamp, thrift: Thrift) -> Option<Duration> {
        let (limit, left) = (self.limit?, self.left_at(now));
        if self.unit != Unit::Requests || left >= thrift.below.part_of(limit) {
            return None;
        }
        let gap = match self.more {
            More::Every(every) => Duration::from_nanos(every),
            More::At(reset) => {
                let nanos = reset.since(now).as_nanos() / u128::from(left.max(1));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            More::Unseen | More::Unknown => return None,
        };
        Some(gap.min(thrift.at_most))
    }
}

/// How long one unit takes to come back, if that can be told: all that is missing takes so long.
fn every(limit: u64, remaining: u64, wait: Duration) -> Option<u64> {
    let missing = u128::from(limit.saturating_sub(remaining));
    // Many tell whole seconds: of a short time that says nothing.
    let is_rough = wait < ROUGH && wait.subsec_nanos() == 0 && remaining > 0;
    if missing == 0 || wait.is_zero() || is_rough {
        return None;
    }
    Some(u64::try_from(wait.as_nanos().div_ceil(missing)).unwrap_or(u64::MAX))
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
