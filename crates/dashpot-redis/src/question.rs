//! What a call's checks come to, and how scripts are asked about it.

use dashpot::{Algorithm, Check, Policy, Rate, Timestamp, Unfit};
use redis::Cmd;
use smallvec::SmallVec;

use crate::key::state_key;
use crate::permits::Permit;
use crate::script;

/// The most a script counts.
const MOST: u64 = (1 << 53) - 1;

/// The most units a sliding log remembers: see the one in memory.
const LOG_MOST: u64 = 2 * dashpot::SLIDING_LOG_MAX;

/// All checks of one call on the same policy and key.
#[derive(Clone, Debug)]
pub(crate) struct Question<'p> {
    /// By the strictest definition.
    pub(crate) policy: &'p Policy,
    /// Under any window, the others that are to agree, if there are any.
    pub(crate) others: SmallVec<[&'p Policy; 1]>,
    /// Where its state is kept.
    pub(crate) key: Vec<u8>,
    /// Whether it is about everybody.
    pub(crate) is_global: bool,
    /// In all.
    pub(crate) cost: u64,
    /// The costs of the checks that are more than a peek.
    pub(crate) parts: SmallVec<[u64; 1]>,
    /// The permit that is taken, under concurrency.
    pub(crate) permit: Option<Permit>,
}

/// The questions of a call, and which of them each check belongs to.
pub(crate) struct Questions<'p> {
    pub(crate) all: SmallVec<[Question<'p>; 4]>,
    pub(crate) members: SmallVec<[usize; 4]>,
}

impl<'p> Questions<'p> {
    pub(crate) fn new(prefix: &str, checks: &[Check<'p, '_>]) -> Result<Self, Unfit> {
        let mut questions = Self { all: SmallVec::new(), members: SmallVec::new() };
        for check in checks {
            check.policy.fits_micros()?;
            let key = state_key(prefix, check.policy, check.key);
            let cost = check.cost.units();
            let known = questions.all.iter().position(|question| question.key == key);
            let index = known.unwrap_or_else(|| {
                questions.all.push(Question {
                    policy: check.policy,
                    others: SmallVec::new(),
                    key,
                    is_global: check.key.as_bytes().is_empty(),
                    cost: 0,
                    parts: SmallVec::new(),
                    permit: None,
                });
                questions.all.len() - 1
            });
            if let Some(question) = questions.all.get_mut(index) {
                question.add(check.policy, cost);
            }
            questions.members.push(index);
        }
        for question in &mut questions.all {
            if question.policy.algorithm() == Algorithm::Concurrency && question.cost > 0 {
                question.permit = Some(Permit::new(&question.parts));
            }
        }
        Ok(questions)
    }
}

impl<'p> Question<'p> {
    fn add(&mut self, policy: &'p Policy, cost: u64) {
        if policy.is_any_window() && policy != self.policy {
            self.others.extend([self.policy, policy]);
            self.others.dedup();
        }
        self.policy = self.policy.stricter(policy);
        self.cost = self.cost.saturating_add(cost);
        if cost > 0 {
            self.parts.push(cost);
        }
    }

    /// Whether it can never be granted.
    pub(crate) fn is_never(&self) -> bool {
        self.cost > self.limit()
    }

    /// The most that it can grant.
    fn limit(&self) -> u64 {
        let limits = self.others.iter().map(|policy| policy.limit());
        limits.fold(self.policy.limit(), u64::min)
    }

    /// How far ahead of now a bucket may be for a cost to pass: by the least of its definitions, told in grains of
    /// this rate, of which there may be a part too much.
    fn room(&self, cost: u64, rate: Rate) -> Span {
        let left = |policy: &Policy| policy.depth().saturating_sub(policy.grains(cost));
        let own = Span::of(left(self.policy), rate);
        let room = |policy: &&Policy| {
            let theirs = policy.rate()?;
            Some(Span::of(left(policy), theirs).told_in(theirs, rate))
        };
        let others = self.others.iter().filter_map(room);
        others.fold(own, |least, room| least.shorter(room))
    }

    /// The calls that undo what was taken of it, had it begun to leak then; one for each part of a permit.
    pub(crate) fn undo(&self, leaks_from: Timestamp, around: Timestamp) -> SmallVec<[Cmd; 1]> {
        let undo = |units, permit: Option<&str>| {
            let mut call = script::SETTLE.call(std::iter::once(self.key.as_slice()));
            let (policy, deed, charged_at) = (self.policy, Deed::Undo, leaks_from);
            let what = Settling { policy, deed, charged_at, units };
            what.tell(permit, around, &mut call).then_some(call)
        };
        match &self.permit {
            Some(permit) => {
                let parts = permit.parts.iter().zip(&self.parts);
                parts.filter_map(|(part, &units)| undo(units, Some(part))).collect()
            }
            None if self.cost > 0 => undo(self.cost, None).into_iter().collect(),
            None => SmallVec::new(),
        }
    }

    /// What `decide.lua` is told: this cost, around this time by the server's clock. It passes if so many more units
    /// could be taken besides.
    pub(crate) fn ask(
        &self,
        (cost, besides): (u64, u64),
        around: Timestamp,
        lease: u64,
        call: &mut Cmd,
    ) {
        let letter = letter(self.policy);
        call.arg(letter);
        match letter {
            "b" => {
                let rate = self.policy.rate().unwrap_or(Rate { units: 0, nanos: 1 });
                if rate.units == 0 {
                    // Nothing comes back, and nothing passes; what was counted is left as it is.
                    call.arg(&[""]).arg(&[0; 5]);
                    return;
                }
                let room = self.room(cost.saturating_add(besides), rate);
                let cost = Span::of(self.policy.grains(cost), rate);
                let carried = self.policy.carried_rate().unwrap_or(rate);
                call.arg(format!(" 0 {}:{}", carried.units, carried.nanos));
                call.arg(cost.micros).arg(cost.grains).arg(room.micros).arg(room.grains);
                call.arg(cost.per_micro);
            }
            "u" => drop(call.arg(cost)),
            _ => {
                call.arg(cost).arg(self.policy.limit().saturating_sub(besides));
                window(self.policy, letter, around, call);
                if letter == "n" {
                    call.arg(lease);
                    let permits = self.permit.as_ref().filter(|_| cost > 0);
                    let permits = permits.map_or(&[] as &[_], |permit| &permit.parts);
                    call.arg(permits.len());
                    for part in permits {
                        call.arg(part.as_bytes());
                    }
                }
            }
        }
    }
}

/// What to do when a check is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Back,
    Undo,
    Charge,
}

impl Deed {
    const fn name(self) -> &'static str {
        match self {
            Self::Back => "back",
            Self::Undo => "undo",
            Self::Charge => "charge",
        }
    }
}

/// Units to be given back, or charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settling<'p> {
    pub(crate) policy: &'p Policy,
    pub(crate) deed: Deed,
    pub(crate) charged_at: Timestamp,
    pub(crate) units: u64,
}

impl Settling<'_> {
    /// What `settle.lua` is told. False if there is nothing to tell.
    pub(crate) fn tell(&self, permit: Option<&str>, around: Timestamp, call: &mut Cmd) -> bool {
        let Self { policy, deed, charged_at, units } = *self;
        let letter = letter(policy);
        let micros = charged_at.as_nanos() / 1000;
        let units = units.min(MOST);
        match letter {
            "u" => return false,
            "b" => {
                let Some(rate) = policy.rate().filter(|rate| rate.units > 0) else { return false };
                let grains = match deed {
                    Deed::Charge => policy.grains(units),
                    Deed::Back | Deed::Undo => policy.worth(units),
                };
                let span = Span::of(grains, rate);
                call.arg(letter).arg(deed.name()).arg(micros);
                let carried = policy.carried_rate().unwrap_or(rate);
                call.arg(format!("{}:{}", carried.units, carried.nanos));
                call.arg(span.micros.min(MOST)).arg(span.grains).arg(span.per_micro);
            }
            "c" => {
                let charged =
                    policy.window_at(charged_at).map_or(0, |window| micros_up(window.start));
                call.arg(letter).arg(deed.name()).arg(charged).arg(units);
                window(policy, letter, around, call);
            }
            "n" => {
                let Some(permit) = permit else { return false };
                call.arg(letter).arg(deed.name()).arg(micros).arg(units).arg(permit);
            }
            _ => {
                call.arg(letter).arg(deed.name()).arg(micros).arg(units);
                window(policy, letter, around, call);
                if letter == "l" {
                    call.arg(LOG_MOST);
                }
            }
        }
        true
    }
}

/// The letter of a policy's algorithm in scripts.
pub(crate) fn letter(policy: &Policy) -> &'static str {
    if policy.quota().is_unlimited() {
        return "u";
    }
    match policy.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => "b",
        Algorithm::FixedWindow if is_even(policy) => "f",
        Algorithm::FixedWindow => "c",
        Algorithm::SlidingWindow => "s",
        Algorithm::SlidingLog => "l",
        Algorithm::Concurrency => "n",
    }
}

/// Whether all its windows have one length, so that it takes no calendar to tell them.
fn is_even(policy: &Policy) -> bool {
    let months = policy.quota().window().and_then(|window| window.as_months());
    months.is_none() && policy.zone().is_utc()
}

/// How long the window is, in microseconds.
pub(crate) fn length(policy: &Policy) -> u64 {
    let length = policy.quota().window().map_or(0, |window| window.length().as_micros());
    u64::try_from(length).unwrap_or(MOST)
}

fn window(policy: &Policy, letter: &str, around: Timestamp, call: &mut Cmd) {
    let at = |at: Timestamp| policy.window_at(at).unwrap_or(0..u64::MAX);
    match letter {
        "f" => {
            let (first, length) = (at(Timestamp::EPOCH).end / 1000, length(policy));
            call.arg(if first == length { 0 } else { first }).arg(length);
        }
        "c" => {
            let now = at(around);
            let next = at(Timestamp::from_nanos(now.end));
            for bound in [now.start, now.end, next.end.max(now.end)] {
                call.arg(micros_up(bound).min(MOST));
            }
        }
        "s" | "l" => drop(call.arg(length(policy))),
        _ => {}
    }
}

/// The first microsecond that is not before.
pub(crate) const fn micros_up(nanos: u64) -> u64 {
    nanos.div_ceil(1000)
}

/// A time in grains: whole microseconds, and grains beyond.
pub(crate) struct Span {
    pub(crate) micros: u64,
    pub(crate) grains: u64,
    per_micro: u64,
}

impl Span {
    pub(crate) fn of(grains: u128, rate: Rate) -> Self {
        let per_micro = u128::from(rate.units) * 1000;
        let short = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Self {
            micros: short(grains / per_micro),
            grains: short(grains % per_micro),
            per_micro: short(per_micro),
        }
    }

    /// The same time in grains of another rate, a part of one left out.
    fn told_in(self, own: Rate, rate: Rate) -> Self {
        let grains =
            u128::from(self.grains) * u128::from(rate.units) / u128::from(own.units.max(1));
        let grains = u64::try_from(grains).unwrap_or(u64::MAX);
        Self { grains, per_micro: rate.units.saturating_mul(1000), ..self }
    }

    fn shorter(self, other: Self) -> Self {
        let is_shorter = (other.micros, other.grains) < (self.micros, self.grains);
        if is_shorter { other } else { self }
    }
}
