//! Commands in one line, as somebody types them.

use smallvec::SmallVec;

use crate::request::{ProtocolError, Request};

/// The longest there is.
pub(crate) const MAX: usize = 64 * 1024;

/// How long a line is without its end, and where the next begins; `None` if there is more to come.
pub(crate) fn end(input: &[u8], most: usize) -> Result<Option<(usize, usize)>, ProtocolError> {
    let most = most.min(MAX);
    match memchr::memchr(b'\n', input) {
        Some(end) if end > most => Err(ProtocolError::Line),
        Some(end) => {
            let has_return = end.checked_sub(1).and_then(|last| input.get(last)) == Some(&b'\r');
            Ok(Some((end - usize::from(has_return), end + 1)))
        }
        None if input.len() > most => Err(ProtocolError::Line),
        None => Ok(None),
    }
}

/// The words of a line, without their quotes: these are put into `words`.
pub(crate) fn split<'a>(text: &[u8], words: &'a mut Vec<u8>) -> Result<Request<'a>, ProtocolError> {
    words.clear();
    let mut ends: SmallVec<[usize; 8]> = SmallVec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        rest = word(rest, words)?;
        ends.push(words.len());
    }
    let words: &'a [u8] = words;
    let mut start = 0;
    let cut = |end: usize| {
        let word = words.get(start..end).unwrap_or_default();
        start = end;
        word
    };
    let request = Request { arguments: ends.into_iter().map(cut).collect() };
    let is_http = request.arguments.first().is_some_and(|name| {
        name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
    });
    if is_http { Err(ProtocolError::Http) } else { Ok(request) }
}

/// Takes one word, and answers what follows it.
fn word<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    loop {
        match *text {
            [] => return Ok(text),
            [b'"', ref quoted @ ..] => return closed(double(quoted, words)?),
            [b'\'', ref quoted @ ..] => return closed(single(quoted, words)?),
            [byte, ref rest @ ..] if byte.is_ascii_whitespace() || byte == 0 => return Ok(rest),
            [byte, ref rest @ ..] => {
                words.push(byte);
                text = rest;
            }
        }
    }
}

/// Nothing but a space follows a quote.
fn closed(text: &[u8]) -> Result<&[u8], ProtocolError> {
    match text.first() {
        None => Ok(text),
        Some(byte) if byte.is_ascii_whitespace() => Ok(text),
        Some(_) => Err(ProtocolError::Quotes),
    }
}

fn double<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    loop {
        match *text {
            [] => return Err(ProtocolError::Quotes),
            [b'"', ref rest @ ..] => return Ok(rest),
            [b'\\', b'x', high, low, ref rest @ ..] if hex(high).and(hex(low)).is_some() => {
                words.push(hex(high).unwrap_or(0) << 4 | hex(low).unwrap_or(0));
                text = rest;
            }
            [b'\\', byte, ref rest @ ..] => {
                words.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => other,
                });
                text = rest;
            }
            [byte, ref rest @ ..] => {
                words.push(byte);
                text = rest;
            }
        }
    }
}

fn single<'t>(mut text: &'t [u8], words: &mut Vec<u8>) -> Result<&'t [u8], ProtocolError> {
    loop {
        match *text {
            [] => return Err(ProtocolError::Quotes),
            [b'\'', ref rest @ ..] => return Ok(rest),
            [b'\\', b'\'', ref rest @ ..] => {
                words.push(b'\'');
                text = rest;
            }
            [byte, ref rest @ ..] => {
                words.push(byte);
                text = rest;
            }
        }
    }
}
