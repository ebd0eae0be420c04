//! What a server tells about its limits, in all the forms there are.

mod families;
mod ietf;
mod retry_after;
mod wait;

use std::time::Duration;

use dashpot::Timestamp;
use http::HeaderMap;
use http::header::{AGE, DATE};

/// More than this in one answer is noise.
const MOST: usize = 8;

/// The longest wait that is believed: a quota of a year can mean it, and who says more means "never" or nothing.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// What a server tells about its limits.
///
/// It reads `Retry-After` (seconds and dates) and `retry-after-ms`; `RateLimit` and `RateLimit-Policy` of the current
/// IETF draft and of draft 07; `RateLimit-*` of drafts 03 to 06; `X-RateLimit-*` and `X-Rate-Limit-*`, and the
/// vendors' families for requests and tokens. What is malformed is left out, and never an error.
///
/// ```
/// use dashpot::Timestamp;
/// use dashpot_client::Told;
/// use http::HeaderMap;
/// use std::time::Duration;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "12".parse()?);
/// headers.insert("ratelimit", r#""minute";r=0;t=12"#.parse()?);
/// let told = Told::read(&headers, Timestamp::from_secs(1_800_000_000));
/// assert_eq!(told.retry_after, Some(Duration::from_secs(12)));
/// assert_eq!(told.allowances[0].remaining, Some(0));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// How long to wait, if it said so itself.
    pub retry_after: Option<Duration>,
    /// What is left, of each quota it told about.
    pub allowances: Vec<Allowance>,
    /// Whether a call that failed is to be made again, if it said so: `x-should-retry`, `stripe-should-retry`.
    pub should_retry: Option<bool>,
}

/// What a server says is left of one of its quotas.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// What the server calls it, or which headers told it.
    pub name: Box<str>,
    /// What is counted.
    pub unit: Unit,
    /// How much there is in all.
    pub limit: Option<u64>,
    /// How much is left.
    pub remaining: Option<u64>,
    /// How long until there is more.
    pub reset_after: Option<Duration>,
    /// How more comes.
    pub refill: Refill,
}

/// What a quota counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// Calls.
    Requests,
    /// Tokens of a language model: see [`Tokens`](crate::Tokens).
    Tokens,
    /// Something else, of which a call takes nobody knows how much.
    Other,
}

/// How more comes when some was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refill {
    /// All at once, at the reset.
    AtOnce,
    /// Bit by bit, until at the reset all is there.
    Steadily,
}

impl Told {
    /// Reads an answer's headers, at a moment of one's own clock.
    ///
    /// Moments are compared with the server's own clock, if the answer has a `Date`: whose clock is wrong does not matter
    /// then.
    #[must_use]
    pub fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let now = date(headers).unwrap_or(now);
        let mut allowances = Vec::new();
        ietf::read(headers, &mut allowances);
        families::read(headers, now, &mut allowances);
        allowances.truncate(MOST);
        Self {
            retry_after: retry_after::read(headers, now),
            allowances,
            should_retry: should_retry(headers),
        }
    }

    /// How long to wait for what this, a denial, says is used up. Some tell only when there is more.
    pub(crate) fn wait_for_empty(&self) -> Option<Duration> {
        let empty = self.allowances.iter().filter(|known| known.remaining.unwrap_or(0) == 0);
        empty.filter_map(Allowance::wait_for_one).max()
    }
}

impl Allowance {
    /// How long until one more is there, if nothing is left.
    fn wait_for_one(&self) -> Option<Duration> {
        let wait = self.reset_after?;
        match (self.refill, self.limit) {
            (Refill::Steadily, Some(limit)) => {
                let nanos = wait.as_nanos().div_ceil(u128::from(limit.max(1)));
                Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
            _ => Some(wait),
        }
    }
}

/// When the server says it answered. An answer that was kept for a while does not say it.
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    if headers.contains_key(AGE) {
        return None;
    }
    wait::moment(text(headers, DATE.as_str())?)
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    let said = ["x-should-retry", "stripe-should-retry"];
    said.iter().find_map(|name| text(headers, name)?.parse().ok())
}

/// A field's first line, if it is text: not only ASCII, since a microsecond may be written `µs`.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    str::from_utf8(headers.get(name)?.as_bytes()).ok().map(str::trim)
}
