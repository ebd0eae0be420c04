//! `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell has it.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use dashpot::{Cost, Decision, Key, Policy, PolicyError, Quota, Window};
use rapidhash::fast::RandomState;

use crate::number::loose;
use crate::reply::{self, Integers};
use crate::request::Request;

/// The longest key, in bytes.
pub const KEY_MAX: usize = 1024;

/// What somebody asks to be let do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle<'a> {
    /// Who asks.
    pub key: Key<'a>,
    /// The limit that comes with the question.
    pub terms: Terms,
    /// How much is taken; 0 only looks.
    pub quantity: Cost,
}

/// A limit as it comes with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    max_burst: u64,
    count: NonZeroU64,
    /// In seconds.
    period: NonZeroU64,
}

/// What is wrong about a question, as redis-cell tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// Too few arguments, or too many.
    Usage,
    /// Something else than a whole number of 64 bits.
    NotInteger(Box<[u8]>),
    /// Nothing comes back, or in no time.
    ZeroRate,
    /// Less than nothing, of this.
    Negative(&'static str),
    /// The period is longer than any window.
    Period,
    /// The key is too long.
    Key,
    /// Where it is counted, this cannot be counted exactly.
    Unfit(Box<str>),
}

impl Wrong {
    /// Writes it as an answer.
    pub fn answer(&self, out: &mut Vec<u8>) {
        let mut text = b"Cell error: Store error: ".to_vec();
        match self {
            // As it is, whatever it is.
            Self::NotInteger(bytes) => {
                text.extend_from_slice(b"Couldn't parse as integer: ");
                text.extend_from_slice(bytes.get(..128).unwrap_or(bytes));
            }
            told => text.extend_from_slice(told.to_string().as_bytes()),
        }
        reply::error(out, &text);
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage => f.write_str(
                "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]",
            ),
            Self::NotInteger(text) => {
                write!(f, "Couldn't parse as integer: {}", String::from_utf8_lossy(text))
            }
            Self::ZeroRate => f.write_str("Zero rates are not supported"),
            Self::Negative(what) => write!(f, "{what} must not be negative"),
            Self::Period => f.write_str("period is more than 100 years"),
            Self::Key => write!(f, "a key has at most {KEY_MAX} bytes"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Wrong {}

impl<'a> Throttle<'a> {
    /// What the command is about.
    #[inline]
    pub(crate) fn read(request: Request<'a>) -> Result<Self, Wrong> {
        let argument = |index| request.get(index).ok_or(Wrong::Usage);
        if !matches!(request.len(), 5 | 6) {
            return Err(Wrong::Usage);
        }
        let (key, burst) = (argument(1)?, argument(2)?);
        let (count, period, quantity) = (argument(3)?, argument(4)?, request.get(5));
        // In the order in which redis-cell complains.
        let [burst, count, period] = [integer(burst)?, integer(count)?, integer(period)?];
        let quantity = quantity.map_or(Ok(1), integer)?;
        if count == 0 || period == 0 {
            return Err(Wrong::ZeroRate);
        }
        let max_burst = unsigned(burst, "max_burst")?;
        let count = NonZeroU64::new(unsigned(count, "count")?).ok_or(Wrong::ZeroRate)?;
        let period = NonZeroU64::new(unsigned(period, "period")?).ok_or(Wrong::ZeroRate)?;
        let quantity = Cost::new(unsigned(quantity, "quantity")?);
        if key.len() > KEY_MAX {
            return Err(Wrong::Key);
        }
        Ok(Self { key: Key::new(key), terms: Terms { max_burst, count, period }, quantity })
    }

    /// Writes what was decided.
    pub fn answer(&self, decision: &Decision<'_>, out: &mut Vec<u8>) {
        let Some(status) = decision.statuses().first() else { return };
        let (limit, remaining) = (self.terms.limit(), status.remaining());
        let reset_after = status.reset_after();
        let mut retry_after = if decision.is_allowed() {
            None
        } else if status.is_never() {
            Some(-1)
        } else {
            // If nobody knows, when all of it is there: there is no telling what is enough.
            Some(seconds(status.retry_after().unwrap_or(reset_after)).max(1))
        };
        // Who only looks is limited, too, by what was used under other terms.
        if self.quantity == Cost::PEEK {
            retry_after = self.terms.excess(reset_after).map(seconds);
        }
        let told = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut integers = Integers::new(i64::from(retry_after.is_some()));
        integers.add(told(limit));
        integers.add(told(remaining));
        integers.add(retry_after.unwrap_or(-1));
        integers.add(seconds(reset_after));
        integers.end(out);
    }

    /// Writes that it is let pass without being counted anywhere.
    pub fn answer_uncounted(&self, out: &mut Vec<u8>) {
        let limit = i64::try_from(self.terms.limit()).unwrap_or(i64::MAX);
        let mut integers = Integers::new(0);
        [limit, limit, -1, 0].into_iter().for_each(|number| integers.add(number));
        integers.end(out);
    }
}

impl Terms {
    /// The most that passes at once.
    const fn limit(&self) -> u64 {
        self.max_burst + 1 // It was written in 63 bits.
    }

    /// The limit as a policy of this name. Whatever the terms, it counts what all others of the name do.
    ///
    /// # Errors
    /// If the period is too long, or the name no name.
    pub fn policy(&self, name: &str) -> Result<Policy, Wrong> {
        let (count, period) = self.rate();
        let window = Window::new(Duration::from_secs(period)).map_err(|_| Wrong::Period)?;
        let quota = Quota::new(count, window).burst(self.limit());
        let policy = Policy::builder(name, quota).any_window().build();
        policy.map_err(|error: PolicyError| Wrong::Unfit(error.to_string().into()))
    }

    /// So many in so many seconds, in lowest terms.
    fn rate(&self) -> (u64, u64) {
        let shared = gcd(self.count.get(), self.period.get());
        (self.count.get() / shared, self.period.get() / shared)
    }

    /// How much longer it takes until all is there than these terms would ever have let it come to.
    fn excess(&self, reset_after: Duration) -> Option<Duration> {
        // A period of no more than a hundred years, or there would have been no policy: so it fits.
        let (count, period) = self.rate();
        let whole = u128::from(self.limit()) * u128::from(period) * 1_000_000_000;
        let whole = whole.div_ceil(count.into());
        let excess = reset_after.as_nanos().checked_sub(whole).filter(|excess| *excess > 0)?;
        Some(Duration::from_nanos(u64::try_from(excess).unwrap_or(u64::MAX)))
    }
}

/// Whole seconds, rounded up: whoever waits so long has waited enough.
fn seconds(time: Duration) -> i64 {
    let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

fn integer(text: &[u8]) -> Result<i64, Wrong> {
    loose(text).ok_or_else(|| Wrong::NotInteger(text.into()))
}

fn unsigned(number: i64, what: &'static str) -> Result<u64, Wrong> {
    u64::try_from(number).map_err(|_| Wrong::Negative(what))
}

fn gcd(mut one: u64, mut other: u64) -> u64 {
    while one != 0 {
        (one, other) = (other % one, one);
    }
    other
}

/// The policies of terms, made once.
#[derive(Debug)]
pub struct Policies {
    name: Box<str>,
    known: HashMap<Terms, Policy, RandomState>,
    /// The last that was asked for: mostly the next, too.
    last: Option<(Terms, Policy)>,
}

/// How many are remembered. To make them again is cheap.
const REMEMBERED: usize = 1024;

impl Policies {
    /// All of this name: they count the same keys.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), known: HashMap::default(), last: None }
    }

    /// The policy of these terms. A new one has to be found `fit`.
    ///
    /// # Errors
    /// If there can be none.
    #[inline]
    pub fn get(
        &mut self,
        terms: &Terms,
        fit: impl FnOnce(&Policy) -> Result<(), Wrong>,
    ) -> Result<&Policy, Wrong> {
        if self.last.as_ref().is_none_or(|(last, _)| last != terms) {
            self.last = Some((*terms, self.find(terms, fit)?));
        }
        // It is there by now.
        self.last.as_ref().map(|(_, policy)| policy).ok_or(Wrong::Usage)
    }

    fn find(
        &mut self,
        terms: &Terms,
        fit: impl FnOnce(&Policy) -> Result<(), Wrong>,
    ) -> Result<Policy, Wrong> {
        if let Some(policy) = self.known.get(terms) {
            return Ok(policy.clone());
        }
        let policy = terms.policy(&self.name)?;
        fit(&policy)?;
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(*terms, policy.clone());
        Ok(policy)
    }
}
