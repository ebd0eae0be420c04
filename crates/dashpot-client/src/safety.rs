//! What may be done twice, and what is worth it.

use std::error::Error;
use std::io;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::told::Told;

/// What an answer means to who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    /// The server turned it away, and others with it.
    pub(crate) is_turned_away: bool,
    /// What to do about it.
    pub(crate) worth: Worth,
}

/// Whether another attempt is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// It is.
    Again,
    /// It is what was asked for, or will not get better.
    Nothing,
    /// It would be, but the server says that there is no point.
    NoPoint,
}

/// What an answer means, if these statuses are worth another attempt.
pub(crate) fn meaning(status: StatusCode, told: &Told, worth_it: &[StatusCode]) -> Meaning {
    let is_used_up = || told.allowances.iter().any(|known| known.remaining == Some(0));
    // Some say 403 where 429 is meant.
    let status = match status {
        StatusCode::FORBIDDEN if told.retry_after.is_some() || is_used_up() => {
            StatusCode::TOO_MANY_REQUESTS
        }
        status => status,
    };
    let is_listed = worth_it.contains(&status);
    let is_failure = status.is_client_error() || status.is_server_error();
    let worth = match told.should_retry {
        Some(true) if is_failure => Worth::Again,
        Some(false) if is_listed => Worth::NoPoint,
        _ if is_listed => Worth::Again,
        _ => Worth::Nothing,
    };
    let is_a_wait = worth != Worth::Nothing || status == StatusCode::SERVICE_UNAVAILABLE;
    let is_turned_away =
        status == StatusCode::TOO_MANY_REQUESTS || told.retry_after.is_some() && is_a_wait;
    Meaning { is_turned_away, worth }
}

/// What became of a call that failed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mishap {
    /// It never reached the server: to make it again is safe, whatever it does.
    Unsent,
    /// Nobody knows: it is made again if that does no harm.
    Unknown,
    /// It will not get better.
    Lasting,
}

/// What becomes of a call after an error of which nothing else is known: who refused to connect has seen nothing.
pub(crate) fn judge(error: &(dyn Error + 'static)) -> Mishap {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::ConnectionRefused) {
            return Mishap::Unsent;
        }
        cause = error.source();
    }
    Mishap::Unknown
}

/// Whether a call may be made twice: by its method, or because the server can tell that it is the same.
pub(crate) fn is_safe(method: &Method, headers: &HeaderMap, key: &HeaderName) -> bool {
    method.is_idempotent() || headers.contains_key(key)
}

/// Marks a call, so that the server can tell it when it comes again.
pub(crate) fn attach_key(method: &Method, headers: &mut HeaderMap, key: &HeaderName) {
    if !method.is_idempotent()
        && !headers.contains_key(key)
        && let Some(value) = random_key()
    {
        headers.insert(key, value);
    }
}

/// A random UUID; none if the system has no randomness to give, and then the call is not marked.
fn random_key() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let random = u128::from_be_bytes(bytes);
    // Version 4, variant 1.
    let random = random & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{random:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex.get(part).unwrap_or_default());
    HeaderValue::from_str(&parts.join("-")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_random_uuids() {
        let keys: Vec<_> = (0..100).map(|_| random_key().unwrap()).collect();
        for key in &keys {
            let text = key.to_str().unwrap();
            let lengths: Vec<_> = text.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{text}");
            assert_eq!(text.as_bytes()[14], b'4', "{text}");
            assert!(b"89ab".contains(&text.as_bytes()[19]), "{text}");
        }
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), 100);
    }
}
