//! What scripts answer.

use std::time::Duration;

use dashpot::{
    Cost, Counted, KeyState, Outcome, Policy, PolicyStatus, Rate, Retry, Standing, Timestamp,
};
use redis::Value;
use smallvec::SmallVec;

use crate::failure::Failure;
use crate::lease::held::Held;
use crate::question::Question;

/// Redis's clock shows microseconds.
const TICK: u64 = 1000;

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Everything was taken.
    Taken,
    /// Nothing was.
    Not,
    /// Nothing was: a calendar has come to another window than expected.
    Elsewhen,
}

/// The answer of `decide.lua`.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) now: Timestamp,
    pub(crate) came: Came,
    pub(crate) states: SmallVec<[Recalled; 4]>,
}

/// What is remembered of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recalled {
    blocked_until: Timestamp,
    counts: Counts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Counts {
    Nothing,
    Bucket { micros: u64, grains: u64, rate: Rate, held: Held },
    FixedWindow { start: u64, count: u64 },
    SlidingWindow { start: u64, previous: u64, current: u64 },
    SlidingLog(SmallVec<[(u64, u64); 3]>),
    Permits(u64),
}

impl Recalled {
    /// Nothing at all.
    pub(crate) const NOTHING: Self =
        Self { blocked_until: Timestamp::EPOCH, counts: Counts::Nothing };

    /// How the key stands.
    pub(crate) fn state(&self, question: &Question<'_>, now: Timestamp) -> KeyState {
        let counted = match &self.counts {
            Counts::Nothing => Counted::Nothing,
            Counts::Bucket { micros, grains, rate, held } => {
                let mut full_at = full_at(*micros, *grains, *rate);
                if !held.is_empty() {
                    full_at = held.among(in_grains(now, *rate), full_at, *rate).full_at;
                }
                Counted::Bucket { full_at, rate: *rate }
            }
            Counts::FixedWindow { start, count } => {
                Counted::FixedWindow { start: start.saturating_mul(TICK), count: *count }
            }
            Counts::SlidingWindow { start, previous, current } => Counted::SlidingWindow {
                start: start.saturating_mul(TICK),
                previous: *previous,
                current: *current,
            },
            Counts::SlidingLog(entries) => Counted::SlidingLog(entries),
            Counts::Permits(permits) => Counted::Permits(*permits),
        };
        let state = KeyState::new(question.policy, counted, self.blocked_until, now);
        state.ticking(TICK).and_under(question.others.iter().copied())
    }

    /// The answer to a question, everything taken if `allowed`.
    pub(crate) fn answer<'p>(
        &self,
        question: &Question<'p>,
        policy: &'p Policy,
        now: Timestamp,
        allowed: bool,
    ) -> PolicyStatus<'p> {
        let state = self.state(question, now);
        let status = state.answer(policy, now, Cost::new(question.cost), allowed);
        self.among_leases(question, status, now, allowed)
    }

    /// The same status of a bucket that others have leased of: what is out with them is not to be had until their leases
    /// end.
    fn among_leases<'p>(
        &self,
        question: &Question<'p>,
        status: PolicyStatus<'p>,
        now: Timestamp,
        allowed: bool,
    ) -> PolicyStatus<'p> {
        let Counts::Bucket { micros, grains, rate, held } = &self.counts else { return status };
        // At another rate as many units are used as were; the leases are told anew then.
        if held.is_empty() || question.policy.carried_rate() != Some(*rate) {
            return status;
        }
        let at = in_grains(now, *rate);
        let mut full_at = held.among(at, full_at(*micros, *grains, *rate), *rate).full_at;
        if allowed {
            full_at += question.policy.grains(question.cost);
        }
        let wait = |until: u128| {
            let grains = until.saturating_sub(at);
            let nanos = u64::try_from(grains.div_ceil(u128::from(rate.units))).unwrap_or(u64::MAX);
            nanos.checked_next_multiple_of(TICK).unwrap_or(u64::MAX)
        };
        let room = |units| wait(held.room_at(at, full_at, (units, question.policy.limit()), *rate));
        let blocked = self.blocked_until.since(now);
        let blocked = u64::try_from(blocked.as_nanos()).unwrap_or(u64::MAX);
        let standing = Standing {
            limit: status.limit(),
            remaining: status.remaining(),
            reset_after_nanos: wait(held.among(at, full_at, *rate).new_at).max(blocked),
            available_after_nanos: (status.remaining() == 0)
                .then(|| room(1).max(blocked))
                .or(Some(0)),
        };
        match status.outcome() {
            Outcome::Allow => PolicyStatus::allow(status.policy(), standing, 0),
            Outcome::Deny if status.is_never() => {
                PolicyStatus::deny(status.policy(), standing, Retry::Never)
            }
            Outcome::Deny => {
                let retry = Retry::After(room(question.cost).max(blocked));
                PolicyStatus::deny(status.policy(), standing, retry)
            }
        }
    }

    /// How the key stands as the holder of a lease sees it, who has so many units at hand: quickly, because it is asked
    /// about every unit that is spent.
    pub(crate) fn glance(&self, policy: &Policy, now: Timestamp, at_hand: u64) -> Standing {
        let (now, limit) = (now.as_nanos(), policy.limit());
        let (used, reset) = match &self.counts {
            Counts::Bucket { micros, grains, rate, held } => {
                let full_at = micros.saturating_add(u64::from(*grains > 0)).saturating_mul(TICK);
                let takes = |units: u64| nanos_for(units, *rate);
                let out = if held.is_empty() { 0 } else { takes(held.out(now)) };
                let busy = full_at.saturating_sub(now).max(out).saturating_sub(takes(at_hand));
                (units_in(busy, *rate), busy)
            }
            Counts::FixedWindow { start, count } => {
                let end = policy.window_at(Timestamp::from_nanos(start.saturating_mul(TICK)));
                let end = end.map_or(now, |window| window.end);
                (count.saturating_sub(at_hand), end.saturating_sub(now))
            }
            Counts::SlidingWindow { start, previous, current } => {
                let length = crate::question::length(policy).saturating_mul(TICK);
                let elapsed = now.saturating_sub(start.saturating_mul(TICK)).min(length);
                let current = current.saturating_sub(at_hand);
                let weighed = u128::from(*previous) * u128::from(length - elapsed);
                let weighed = weighed.div_ceil(u128::from(length.max(1)));
                let used = current.saturating_add(u64::try_from(weighed).unwrap_or(u64::MAX));
                let windows = if current > 0 { 2 } else { u64::from(*previous > 0) };
                (used, length.saturating_mul(windows).saturating_sub(elapsed))
            }
            Counts::Nothing | Counts::SlidingLog(_) | Counts::Permits(_) => (0, 0),
        };
        let remaining = limit.saturating_sub(used);
        let reset_after_nanos = reset.checked_next_multiple_of(TICK).unwrap_or(u64::MAX);
        let available_after_nanos = Some(if remaining > 0 { 0 } else { reset_after_nanos });
        Standing { limit, remaining, reset_after_nanos, available_after_nanos }
    }

    /// Whether the key is blocked.
    pub(crate) fn is_blocked(&self, now: Timestamp) -> bool {
        self.blocked_until > now
    }

    /// From when on what was taken at a moment, when this was recalled, has leaked: not before what was in
    /// the bucket already, if that is known. For all else, the moment itself.
    pub(crate) fn undone_from(&self, policy: &Policy, taken_at: Timestamp) -> Timestamp {
        match self.counts {
            Counts::Bucket { micros, rate, .. } if policy.carried_rate() == Some(rate) => {
                taken_at.max(Timestamp::from_nanos(micros.saturating_mul(TICK)))
            }
            _ => taken_at,
        }
    }

    /// Whether it tells a moment later how a cost would fare under a limit, having been asked about another.
    pub(crate) fn tells(&self, cost_and_limit: (u64, u64), asked: (u64, u64)) -> bool {
        match self.counts {
            // Only the entries that mattered are known.
            Counts::SlidingLog(_) => cost_and_limit == asked,
            // They may come back at any moment.
            Counts::Permits(_) => false,
            _ => true,
        }
    }
}

impl Answer {
    pub(crate) fn read(value: &Value, questions: &[&Question<'_>]) -> Result<Self, Failure> {
        Self::try_read(value, questions).ok_or(Failure::Odd("the answer of a script"))
    }

    fn try_read(value: &Value, questions: &[&Question<'_>]) -> Option<Self> {
        let (now, came, states) = head(value)?;
        if came == Came::Elsewhen {
            return Some(Self { now, came, states: SmallVec::new() });
        }
        let mut states = states.iter();
        let read = |question: &&Question<'_>| recalled(question, states.next()?);
        let states = questions.iter().map(read).collect::<Option<_>>()?;
        Some(Self { now, came, states })
    }
}

/// The rest of an answer of `lease.lua`.
#[derive(Debug)]
pub(crate) struct Leased {
    pub(crate) recalled: Recalled,
    pub(crate) lasts: Duration,
    pub(crate) is_known: bool,
    pub(crate) units: u64,
}

impl Leased {
    pub(crate) fn read(question: &Question<'_>, rest: &[Value]) -> Option<Self> {
        let [state, lasts, is_known, units] = rest else { return None };
        Some(Self {
            recalled: recalled(question, state)?,
            lasts: Duration::from_micros(number(lasts)?),
            is_known: number(is_known)? == 1,
            units: number(units)?,
        })
    }
}

/// The beginning of every answer: when, and what came of it.
pub(crate) fn head(value: &Value) -> Option<(Timestamp, Came, &[Value])> {
    let Value::Array(parts) = value else { return None };
    let [seconds, micros, rest @ ..] = parts.as_slice() else { return None };
    let micros = number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)?;
    let now = Timestamp::from_nanos(micros.checked_mul(TICK)?);
    let (came, rest) = match rest {
        [] => (Came::Taken, rest),
        [came, rest @ ..] => match number(came)? {
            0 => (Came::Not, rest),
            1 => (Came::Taken, rest),
            _ => (Came::Elsewhen, rest),
        },
    };
    Some((now, came, rest))
}

fn recalled(question: &Question<'_>, value: &Value) -> Option<Recalled> {
    match (crate::question::letter(question.policy), value) {
        (_, Value::Nil) => Some(Recalled::NOTHING),
        (letter, Value::BulkString(text)) => {
            let text = std::str::from_utf8(text).ok()?;
            let (blocked, text) = match text.strip_prefix('!') {
                Some(rest) => rest.split_once('!')?,
                None => ("0", text),
            };
            let blocked_until =
                Timestamp::from_nanos(blocked.parse::<u64>().ok()?.checked_mul(TICK)?);
            let counts = if text.is_empty() { Counts::Nothing } else { counts(letter, text)? };
            // Somebody else's, if no window starts then.
            if let Counts::SlidingWindow { start, .. } = counts
                && !start.is_multiple_of(crate::question::length(question.policy))
            {
                return None;
            }
            Some(Recalled { blocked_until, counts })
        }
        ("l", Value::Array(parts)) => log(question, parts),
        ("n", Value::Array(parts)) => {
            let [blocked, permits] = parts.as_slice() else { return None };
            Some(Recalled {
                blocked_until: blocked_until(blocked)?,
                counts: Counts::Permits(number(permits)?),
            })
        }
        _ => None,
    }
}

/// When a bucket is full, in grains since the epoch.
fn full_at(micros: u64, grains: u64, rate: Rate) -> u128 {
    u128::from(micros) * u128::from(rate.units) * u128::from(TICK) + u128::from(grains)
}

fn in_grains(at: Timestamp, rate: Rate) -> u128 {
    u128::from(at.as_nanos()) * u128::from(rate.units)
}

/// How long so many units take, in nanoseconds, a part left out.
fn nanos_for(units: u64, rate: Rate) -> u64 {
    match units.checked_mul(rate.nanos) {
        Some(grains) => grains / rate.units.max(1),
        None => {
            let grains = u128::from(units) * u128::from(rate.nanos);
            u64::try_from(grains / u128::from(rate.units.max(1))).unwrap_or(u64::MAX)
        }
    }
}

/// How many units take so long, a part counted as a whole.
fn units_in(nanos: u64, rate: Rate) -> u64 {
    match nanos.checked_mul(rate.units) {
        Some(grains) => grains.div_ceil(rate.nanos.max(1)),
        None => {
            let grains = u128::from(nanos) * u128::from(rate.units);
            u64::try_from(grains.div_ceil(u128::from(rate.nanos.max(1)))).unwrap_or(u64::MAX)
        }
    }
}

fn counts(letter: &str, text: &str) -> Option<Counts> {
    let (text, leases) = text.find('|').map_or((text, ""), |at| text.split_at(at));
    let (moment, rest) = text.split_at_checked(16)?;
    let moment: u64 = moment.parse().ok()?;
    Some(match letter {
        "b" => {
            let (grains, rate) = rest.strip_prefix(' ')?.split_once(' ')?;
            let (units, nanos) = rate.split_once(':')?;
            let rate = Rate { units: units.parse().ok()?, nanos: nanos.parse().ok()? };
            let held = Held::parse(leases, Some(rate))?;
            Counts::Bucket { micros: moment, grains: grains.parse().ok()?, rate, held }
        }
        "f" | "c" => Counts::FixedWindow { start: moment, count: rest.get(16..)?.parse().ok()? },
        "s" => {
            let (previous, current) = rest.split_once(' ')?;
            Counts::SlidingWindow {
                start: moment,
                previous: previous.parse().ok()?,
                current: current.parse().ok()?,
            }
        }
        _ => return None,
    })
}

/// A log with as few entries as give the same answers: those whose leaving is waited for, and the newest.
fn log(question: &Question<'_>, parts: &[Value]) -> Option<Recalled> {
    let [blocked, live, newest, oldest, leaver, last] = parts else { return None };
    let (live, limit) = (number(live)?, question.policy.limit());
    let told = [
        (oldest, live.saturating_add(1).saturating_sub(limit).max(1)),
        (leaver, live.saturating_add(question.cost).saturating_sub(limit)),
        (last, live),
        // It tells the time, even if all of it was given back.
        (newest, live),
    ];
    let known =
        told.iter().filter_map(|&(at, upto)| Some((number(at)?.saturating_mul(TICK), upto)));
    let mut entries: SmallVec<[(u64, u64); 3]> = known.collect();
    entries.dedup();
    Some(Recalled { blocked_until: blocked_until(blocked)?, counts: Counts::SlidingLog(entries) })
}

/// A block as sorted sets have it: the moment, negative.
fn blocked_until(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Nil => Some(Timestamp::EPOCH),
        Value::BulkString(text) => {
            let micros = std::str::from_utf8(text).ok()?.strip_prefix('-')?.parse::<u64>().ok()?;
            Some(Timestamp::from_nanos(micros.saturating_mul(TICK)))
        }
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}
