//! What clients send: lists of byte strings, or lines.

use smallvec::SmallVec;

use crate::line;
use crate::number::strict;

/// What a client asks for, and with what: at least its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub(crate) arguments: Arguments<'a>,
}

pub(crate) type Arguments<'a> = SmallVec<[&'a [u8]; 8]>;

impl<'a> Request<'a> {
    /// The name of the command, and what goes with it.
    #[must_use]
    pub fn arguments(&self) -> &[&'a [u8]] {
        &self.arguments
    }
}

/// How much a client may say at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of a command in all.
    pub bytes: usize,
    /// Its arguments, the name included.
    pub arguments: usize,
    /// The bytes of an argument.
    pub argument: usize,
    /// Whether it is because nobody knows who it is.
    pub is_stranger: bool,
}

impl Limits {
    /// Of those who may ask.
    pub const KNOWN: Self =
        Self { bytes: 64 * 1024, arguments: 1024, argument: 64 * 1024, is_stranger: false };
    /// Of those who have to say a password first. The same as Redis's.
    pub const STRANGER: Self =
        Self { arguments: 10, argument: 16 * 1024, is_stranger: true, ..Self::KNOWN };
}

/// What cannot be understood. Nobody knows where the next command begins, so that was it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// No number where the number of arguments has to be, or too large a one.
    #[error("invalid multibulk length")]
    Count,
    /// More arguments than a stranger may have.
    #[error("unauthenticated multibulk length")]
    StrangersCount,
    /// The number of arguments does not end.
    #[error("too big mbulk count string")]
    EndlessCount,
    /// No number where the length of an argument has to be, or too large a one.
    #[error("invalid bulk length")]
    Length,
    /// A longer argument than a stranger may have.
    #[error("unauthenticated bulk length")]
    StrangersLength,
    /// The length of an argument does not end.
    #[error("too big bulk count string")]
    EndlessLength,
    /// Something else where an argument has to begin.
    #[error("expected '$', got '{}'", char::from(*.0))]
    NoArgument(u8),
    /// An argument is longer than it says.
    #[error("expected CRLF after an argument")]
    NoEnd,
    /// All arguments together are too long.
    #[error("too big request")]
    Bytes,
    /// A line that does not end.
    #[error("too big inline request")]
    Line,
    /// A line with an open quote.
    #[error("unbalanced quotes in request")]
    Quotes,
    /// A browser that was sent here. It hears nothing.
    #[error("this is no HTTP server")]
    Http,
}

/// Reads a command, and tells where it ends; `None` if there is more to come. Arguments of lines are put into `line`, as they are
/// without their quotes.
///
/// # Errors
/// If it is none, or too long.
#[inline]
pub fn read<'a>(
    input: &'a [u8],
    line: &'a mut Vec<u8>,
    limits: Limits,
) -> Result<Option<(Request<'a>, usize)>, ProtocolError> {
    // Empty ones are no commands.
    let mut start = 0;
    loop {
        let Some(rest) = input.get(start..) else { return Ok(None) };
        let read = match rest.first() {
            None => return if start > 0 { Ok(Some((Request::NOTHING, start))) } else { Ok(None) },
            Some(b'*') => frame(rest, limits)?,
            Some(_) => match line::end(rest, limits.bytes)? {
                Some((0, next)) => Some((Request::NOTHING, next)),
                Some((length, next)) => {
                    let text = rest.get(..length).unwrap_or_default();
                    return Ok(Some((line::split(text, line)?, start + next)));
                }
                None => None,
            },
        };
        match read {
            Some((request, length)) if request.arguments.is_empty() => start += length,
            Some((request, length)) => return Ok(Some((request, start + length))),
            None if start > 0 => return Ok(Some((Request::NOTHING, start))),
            None => return Ok(None),
        }
    }
}

impl Request<'_> {
    /// What may stand between commands.
    const NOTHING: Self = Self { arguments: SmallVec::new_const() };

    /// Whether there is nothing to answer.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.arguments.is_empty()
    }
}

/// Reads a list of byte strings.
#[inline]
fn frame(input: &[u8], limits: Limits) -> Result<Option<(Request<'_>, usize)>, ProtocolError> {
    let Some((count, mut at)) = head(input, ProtocolError::Count, ProtocolError::EndlessCount)?
    else {
        return Ok(None);
    };
    // None at all, or fewer, is nothing.
    let count = usize::try_from(count).unwrap_or(0);
    if count > limits.arguments {
        let is_strange = limits.is_stranger && count <= Limits::KNOWN.arguments;
        return Err(if is_strange { ProtocolError::StrangersCount } else { ProtocolError::Count });
    }
    let mut arguments = Arguments::new();
    for _ in 0..count {
        let rest = input.get(at..).unwrap_or_default();
        match rest.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(other) => return Err(ProtocolError::NoArgument(*other)),
        }
        let Some((length, begin)) =
            head(rest, ProtocolError::Length, ProtocolError::EndlessLength)?
        else {
            return Ok(None);
        };
        let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
        if length > limits.argument {
            let is_strange = limits.is_stranger && length <= Limits::KNOWN.argument;
            let strange = ProtocolError::StrangersLength;
            return Err(if is_strange { strange } else { ProtocolError::Length });
        }
        if at + begin + length > limits.bytes {
            return Err(ProtocolError::Bytes);
        }
        let Some((argument, rest)) = rest.get(begin..).and_then(|it| it.split_at_checked(length))
        else {
            return Ok(None);
        };
        match rest {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Ok(None),
            _ => return Err(ProtocolError::NoEnd),
        }
        arguments.push(argument);
        at += begin + length + 2;
    }
    Ok(Some((Request { arguments }, at)))
}

/// Reads `*N` or `$N` to the end of its line; `None` if there is more to come.
#[inline]
fn head(
    input: &[u8],
    wrong: ProtocolError,
    endless: ProtocolError,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    // Nearly all are one or two digits.
    match *input {
        [_, one @ b'0'..=b'9', b'\r', b'\n', ..] => return Ok(Some((i64::from(one - b'0'), 4))),
        [_, ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => {
            return Ok(Some((i64::from(ten - b'0') * 10 + i64::from(one - b'0'), 5)));
        }
        _ => {}
    }
    let rest = input.get(1..).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\r', rest) else {
        return if rest.len() > line::MAX { Err(endless) } else { Ok(None) };
    };
    if end > line::MAX {
        return Err(endless);
    }
    let number = rest.get(..end).and_then(strict).ok_or(wrong)?;
    match rest.get(end + 1) {
        None => Ok(None),
        Some(b'\n') => Ok(Some((number, end + 3))),
        Some(_) => Err(wrong),
    }
}
