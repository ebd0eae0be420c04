//! Lines of access logs: common, combined, JSON, and what the gateway itself writes.

mod combined;
mod json;
mod ours;

use std::io::{self, BufRead, Read};
use std::net::IpAddr;
use std::time::Duration;

use crate::serve::question::AskedRequest;
use crate::serve::text::Text;

/// The longest line that is read, in bytes. What is longer is left out.
const LINE_MAX: usize = 256 * 1024;

/// A request that was served once.
#[derive(Debug)]
pub(super) struct Entry {
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    pub(super) request: AskedRequest<'static>,
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) took: Option<Duration>,
}

/// Calls with each line and its number; those that are too long are none.
pub(super) fn lines(
    mut from: impl BufRead,
    mut each: impl FnMut(u64, Option<&str>, usize),
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut read = from.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || read < LINE_MAX;
        while !is_whole && !line.ends_with(b"\n") {
            line.clear();
            match from.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)? {
                0 => break,
                more => read += more,
            }
        }
        let text = String::from_utf8_lossy(&line);
        each(number, is_whole.then(|| text.trim()), read);
    }
    Ok(())
}

/// Reads a line, whatever it is one of; or says why that cannot be.
pub(super) fn read(line: &str) -> Result<Entry, String> {
    match line.split_ascii_whitespace().next() {
        Some(first) if first.starts_with('{') => json::read(line),
        // `2026-11-18T10:25:00.000Z 203.0.113.7 GET / …`
        Some(first) if first.parse::<jiff::Timestamp>().is_ok() => ours::read(line),
        _ => combined::read(line),
    }
}

fn request(method: &str, path: &str, ip: Option<IpAddr>) -> AskedRequest<'static> {
    AskedRequest {
        method: Some(owned(method)),
        // Some clients ask for a whole URL.
        path: owned(path_of(path)),
        ip,
        ..AskedRequest::default()
    }
}

fn path_of(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            rest.find('/').and_then(|from| rest.get(from..)).unwrap_or("/")
        }
        _ => target,
    }
}

fn owned<'a>(text: &str) -> Text<'a> {
    Text(text.to_owned().into())
}

/// `GET /path HTTP/1.1`
fn request_line(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    let is_method =
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    (is_method && !path.is_empty()).then_some((method, path))
}

/// An address, with or without a port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(ip, _)| ip);
    bare.unwrap_or(text)
        .parse()
        .ok()
        .or_else(|| text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()))
}

/// `18/Nov/2026:10:25:00 +0000`
fn clf_time(text: &str) -> Option<u64> {
    let read = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
    nanos(read.to_timestamp().ok()?)
}

fn nanos(at: jiff::Timestamp) -> Option<u64> {
    u64::try_from(at.as_nanosecond()).ok()
}

fn took(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
