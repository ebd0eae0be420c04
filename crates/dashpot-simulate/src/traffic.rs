//! Traffic that is made up, in words.

mod shapes;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dashpot::{Quota, Window};

use crate::{Arrival, Setting};

/// Arrivals, in order.
pub type Arrivals = Box<dyn Iterator<Item = Arrival> + Send>;

/// The most callers there may be.
const CALLERS_MAX: u32 = 1_000_000;

/// Traffic that is made up. As text: `steady 12/s`, `burst 50 every 10s`, `boundary 100/min`, `poisson 12/s`,
/// `zipf 50/s callers 1000 exponent 1.1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// One after another, evenly.
    Steady(Quota),
    /// So many at once, and again after so long.
    Burst {
        /// How many.
        many: u64,
        /// How often.
        every: Duration,
    },
    /// Somebody who knows when windows end: all of the limit right before, and again right after. Then a window's rest, so that it is
    /// never more than the limit on average. Without a limit, that of what it is sent to.
    Boundary(Option<Quota>),
    /// At random, with so many on average.
    Poisson(Quota),
    /// The same by many callers, of whom few are busy: the n-th asks n<sup>−exponent</sup> times as often as the first.
    Zipf {
        /// How many in all.
        rate: Quota,
        /// How many callers.
        callers: u32,
        /// How unequal they are.
        exponent: f64,
    },
}

/// It is to be aimed at a limit by the window, and there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`boundary` is aimed at a limit by the window, and there is none; say which: `boundary 100/min`"
)]
pub struct Unaimed;

impl Traffic {
    /// About how many arrivals there are in so much time.
    #[must_use]
    pub fn expected(&self, length: Duration) -> f64 {
        let seconds = length.as_secs_f64();
        let per_second = |quota: &Quota| match (quota.count(), quota.window()) {
            (Some(count), Some(window)) => count as f64 / window.length().as_secs_f64(),
            _ => 0.0,
        };
        match self {
            Self::Steady(rate) | Self::Poisson(rate) | Self::Zipf { rate, .. } => {
                per_second(rate) * seconds
            }
            Self::Burst { many, every } => {
                *many as f64 * (seconds / every.as_secs_f64()).ceil().max(1.0)
            }
            Self::Boundary(Some(limit)) => {
                per_second(limit) * seconds + limit.count().unwrap_or(0) as f64
            }
            Self::Boundary(None) => 0.0,
        }
    }

    /// The same, aimed at a limit if it is to be.
    #[must_use]
    pub fn aimed_at(self, limit: Quota) -> Self {
        match self {
            // Windows know no burst.
            Self::Boundary(None) => Self::Boundary(
                limit.window().map(|window| Quota::new(limit.count().unwrap_or(0), window)),
            ),
            other => other,
        }
    }

    /// The arrivals.
    ///
    /// # Errors
    /// If it is to be aimed at a limit and is not.
    pub fn arrivals(&self, setting: &Setting) -> Result<Arrivals, Unaimed> {
        let length = setting.nanos();
        let all: Arrivals = match *self {
            Self::Steady(rate) => Box::new(shapes::steady(rate)),
            Self::Burst { many, every } => Box::new(shapes::bursts(many, every)),
            Self::Boundary(Some(limit)) => Box::new(shapes::boundary(limit)),
            Self::Boundary(None) => return Err(Unaimed),
            Self::Poisson(rate) => Box::new(shapes::poisson(rate, setting.seed)),
            Self::Zipf { rate, callers, exponent } => {
                Box::new(shapes::zipf(rate, (callers, exponent), setting.seed))
            }
        };
        Ok(Box::new(all.take_while(move |arrival| arrival.at < length)))
    }
}

/// What is no traffic, and what would be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseTrafficError(String);

const KINDS: &str = "write `steady 12/s`, `burst 50 every 10s`, `boundary`, `poisson 12/s` or \
                     `zipf 50/s callers 1000`";

impl FromStr for Traffic {
    type Err = ParseTrafficError;

    fn from_str(text: &str) -> Result<Self, ParseTrafficError> {
        let mut words = Words(text.split_ascii_whitespace());
        let kind = words.0.next().unwrap_or_default();
        let traffic = match kind {
            "steady" => Self::Steady(words.rate("steady 12/s")?),
            "poisson" => Self::Poisson(words.rate("poisson 12/s")?),
            "burst" => {
                let many = words.number("how many at once, as in `burst 50 every 10s`")?;
                words.word("every", "how often, as in `burst 50 every 10s`")?;
                Self::Burst { many, every: words.time("how often, as in `burst 50 every 10s`")? }
            }
            "boundary" => match words.0.next() {
                None => Self::Boundary(None),
                Some(limit) => Self::Boundary(Some(rate(limit, "boundary 100/min")?)),
            },
            "zipf" => {
                let rate = words.rate("zipf 50/s callers 1000")?;
                words.word("callers", "how many there are, as in `zipf 50/s callers 1000`")?;
                let callers = words.number("how many there are, as in `callers 1000`")?;
                let callers = u32::try_from(callers).ok().filter(|many| *many <= CALLERS_MAX);
                let callers =
                    callers.ok_or_else(|| wrong(format!("at most {CALLERS_MAX} callers")))?;
                Self::Zipf { rate, callers, exponent: words.exponent()? }
            }
            other => return Err(wrong(format!("`{other}` is no kind of traffic: {KINDS}"))),
        };
        match words.0.next() {
            None => Ok(traffic),
            Some(more) => Err(wrong(format!("`{more}` is too much after `{kind} …`: {KINDS}"))),
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady(rate) => write!(f, "steady {rate}"),
            // As windows are written, since so it is read.
            Self::Burst { many, every } => match Window::new(*every) {
                Ok(every) => write!(f, "burst {many} every {every}"),
                Err(_) => write!(f, "burst {many} every {}", crate::text::time(*every)),
            },
            Self::Boundary(None) => f.write_str("boundary"),
            Self::Boundary(Some(limit)) => write!(f, "boundary {limit}"),
            Self::Poisson(rate) => write!(f, "poisson {rate}"),
            Self::Zipf { rate, callers, exponent } => {
                write!(f, "zipf {rate} callers {callers} exponent {exponent}")
            }
        }
    }
}

fn wrong(text: String) -> ParseTrafficError {
    ParseTrafficError(text)
}

/// So many in so much time, and nothing else.
fn rate(text: &str, example: &str) -> Result<Quota, ParseTrafficError> {
    let quota: Quota = { text.parse() }
        .map_err(|error| wrong(format!("`{text}` is no rate, as in `{example}`: {error}")))?;
    let is_rate = quota.window().is_some() && quota.count().is_some_and(|count| count > 0);
    if !is_rate || quota.explicit_burst().is_some() {
        return Err(wrong(format!(
            "`{text}` is no rate: write so many in a time, as in `{example}`"
        )));
    }
    Ok(quota)
}

struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl Words<'_> {
    fn rate(&mut self, example: &str) -> Result<Quota, ParseTrafficError> {
        let text = self.0.next();
        rate(text.ok_or_else(|| wrong(format!("say how many, as in `{example}`")))?, example)
    }

    fn number(&mut self, what: &str) -> Result<u64, ParseTrafficError> {
        let number = self.0.next().and_then(|text| text.replace('_', "").parse().ok());
        number.filter(|number| *number > 0).ok_or_else(|| wrong(format!("say {what}")))
    }

    fn word(&mut self, word: &str, what: &str) -> Result<(), ParseTrafficError> {
        let found = self.0.next().is_some_and(|found| found == word);
        if found { Ok(()) } else { Err(wrong(format!("say {what}"))) }
    }

    /// A time, as windows are written.
    fn time(&mut self, what: &str) -> Result<Duration, ParseTrafficError> {
        let quota = self.0.next().and_then(|text| format!("1/{text}").parse::<Quota>().ok());
        let window = quota.and_then(Quota::window);
        window.map(Window::length).ok_or_else(|| wrong(format!("say {what}")))
    }

    fn exponent(&mut self) -> Result<f64, ParseTrafficError> {
        match self.0.next() {
            None => Ok(1.0),
            Some("exponent") => {
                let number = self.0.next().and_then(|text| text.parse::<f64>().ok());
                let number = number.filter(|number| (0.0..=10.0).contains(number));
                number.ok_or_else(|| wrong("an exponent is from 0 to 10".to_owned()))
            }
            Some(other) => Err(wrong(format!("`{other}` is not `exponent`, as in `exponent 1.1`"))),
        }
    }
}
