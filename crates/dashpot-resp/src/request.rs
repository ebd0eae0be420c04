//! What clients send: lists of byte strings, or lines.

use crate::line;
use crate::number::strict;

/// What a client asks for, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What the arguments are in.
    text: &'a [u8],
    /// Where they begin and end there.
    spans: &'a [Span],
}

/// Where an argument is. Commands are short.
type Span = (u32, u32);

impl<'a> Request<'a> {
    /// How many arguments there are, the name included. None is no command, and not to be answered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is nothing to answer.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// An argument; the first is the name of the command.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(index)?;
        self.text.get(start as usize..end as usize)
    }

    /// All arguments, the name first.
    pub fn arguments(&self) -> impl Iterator<Item = &'a [u8]> {
        let Self { text, spans } = *self;
        spans.iter().filter_map(move |(start, end)| text.get(*start as usize..*end as usize))
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

/// Reads commands, one after the other. It keeps nothing of them but its room.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    spans: Vec<Span>,
    /// The words of a line, without their quotes.
    words: Vec<u8>,
}

impl Reader {
    /// Reads a command, and tells where it ends; `None` if there is more to come. What stands between commands is a command without
    /// arguments.
    ///
    /// # Errors
    /// If it is none, or too long.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        input: &'a [u8],
        limits: Limits,
    ) -> Result<Option<(Request<'a>, usize)>, ProtocolError> {
        self.spans.clear();
        if input.first() == Some(&b'*') {
            let length = frame(input, limits, &mut self.spans)?;
            return Ok(length.map(|length| (Request { text: input, spans: &self.spans }, length)));
        }
        let Some((length, next)) = line::end(input, limits.bytes)? else { return Ok(None) };
        let text = input.get(..length).unwrap_or_default();
        line::split(text, &mut self.words, |start, end| {
            self.spans.push((short(start), short(end)));
            self.spans.len() <= limits.arguments
        })?;
        let request = Request { text: &self.words, spans: &self.spans };
        match request.get(0) {
            Some(name) if line::is_http(name) => Err(ProtocolError::Http),
            _ => Ok(Some((request, next))),
        }
    }

    /// Gives room back that nobody needs often.
    pub fn shrink(&mut self, kept: usize) {
        self.spans.shrink_to(kept);
        self.words.shrink_to(kept);
    }
}

/// As part of a span. No command is longer.
#[inline]
fn short(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Reads a list of byte strings, and tells where it ends.
#[inline]
fn frame(
    input: &[u8],
    limits: Limits,
    spans: &mut Vec<Span>,
) -> Result<Option<usize>, ProtocolError> {
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
        let (start, end) = (at + begin, at + begin + length);
        if end > limits.bytes {
            return Err(ProtocolError::Bytes);
        }
        match input.get(end..) {
            Some([b'\r', b'\n', ..]) => {}
            None | Some([] | [b'\r']) => return Ok(None),
            Some(_) => return Err(ProtocolError::NoEnd),
        }
        spans.push((short(start), short(end)));
        at = end + 2;
    }
    Ok(Some(at))
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
