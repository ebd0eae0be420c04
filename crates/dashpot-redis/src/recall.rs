//! What scripts answer.

use dashpot::{Cost, Counted, KeyState, Policy, PolicyStatus, Rate, Timestamp};
use redis::Value;
use smallvec::SmallVec;

use crate::failure::Failure;
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
    Bucket { micros: u64, grains: u64, rate: Rate },
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
            Counts::Bucket { micros, grains, rate } => {
                let whole = u128::from(*micros) * u128::from(rate.units) * u128::from(TICK);
                Counted::Bucket { full_at: whole + u128::from(*grains), rate: *rate }
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
        state.answer(policy, now, Cost::new(question.cost), allowed)
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

    /// Whether it tells a moment later how a cost would fare, having been asked about another.
    pub(crate) fn tells(&self, cost: u64, asked: u64) -> bool {
        match self.counts {
            // Only the entries that mattered are known.
            Counts::SlidingLog(_) => cost == asked,
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

fn counts(letter: &str, text: &str) -> Option<Counts> {
    let (moment, rest) = text.split_at_checked(16)?;
    let moment: u64 = moment.parse().ok()?;
    Some(match letter {
        "b" => {
            let (grains, rate) = rest.strip_prefix(' ')?.split_once(' ')?;
            let (units, nanos) = rate.split_once(':')?;
            let rate = Rate { units: units.parse().ok()?, nanos: nanos.parse().ok()? };
            Counts::Bucket { micros: moment, grains: grains.parse().ok()?, rate }
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
