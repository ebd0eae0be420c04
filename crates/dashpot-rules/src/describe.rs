//! How a decision is told: what `[headers]` and `on_deny` mean.

use std::time::Duration;

/// How a decision is told to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headers {
    /// The header styles, none if empty.
    pub styles: Vec<HeaderStyle>,
    /// Up to so much is added to `Retry-After` and to reset times on a denial, at random, so that
    /// those who wait do not all come back at once.
    pub jitter: Duration,
    /// Whether scripts of other origins may read the headers.
    pub expose: bool,
}

impl Default for Headers {
    fn default() -> Self {
        Self { styles: vec![HeaderStyle::Ietf], jitter: Duration::ZERO, expose: true }
    }
}

/// How the state of a limit is spelled in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit` and `RateLimit-Policy` as in drafts 08 to 11 of the IETF.
    Ietf,
    /// The same as in draft 07.
    Draft07,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` as in draft 06.
    Draft06,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`, as GitHub has them.
    XRateLimit,
}

impl HeaderStyle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ietf, Self::Draft07, Self::Draft06, Self::XRateLimit];

    /// The name in rule files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ietf => "ietf",
            Self::Draft07 => "draft-07",
            Self::Draft06 => "draft-06",
            Self::XRateLimit => "x-ratelimit",
        }
    }

    /// Whether the two cannot be sent together, because they write the same fields.
    #[must_use]
    pub fn shares_fields_with(self, other: Self) -> bool {
        self == other || (self != Self::XRateLimit && other != Self::XRateLimit)
    }
}

/// What a rule answers instead of the usual 429.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnDeny {
    /// The status; 429 if left out, 303 with a redirect.
    pub status: Option<u16>,
    /// The body.
    pub body: Option<String>,
    /// Its type; plain text if left out.
    pub content_type: Option<String>,
    /// Where to send the caller, e.g. to a captcha.
    pub redirect: Option<String>,
}
