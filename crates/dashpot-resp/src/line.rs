//! Commands in one line, as somebody types them.

use crate::request::ProtocolError;

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

/// Puts the words of a line, without their quotes, into `words`, and tells where each is. Fails if `found` has enough.
pub(crate) fn split(
    text: &[u8],
    words: &mut Vec<u8>,
    mut found: impl FnMut(usize, usize) -> bool,
) -> Result<(), ProtocolError> {
    words.clear();
    let mut rest = text.trim_ascii_start();
    while !rest.is_empty() {
        let start = words.len();
        rest = word(rest, words)?.trim_ascii_start();
        if !found(start, words.len()) {
            return Err(ProtocolError::Line);
        }
    }
    Ok(())
}

/// Whether a browser begins like that.
pub(crate) fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
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
