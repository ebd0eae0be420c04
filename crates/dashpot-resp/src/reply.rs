//! Answers, as bytes.

/// Which version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

fn headed(out: &mut Vec<u8>, head: u8, number: i64) {
    out.push(head);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// As a length. Nothing is longer than that.
fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn simple(out: &mut Vec<u8>, text: &str) {
    out.push(b'+');
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes an error, such as `ERR no such thing`. What would end it early is written as a space.
pub fn error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'-');
    out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn integer(out: &mut Vec<u8>, number: i64) {
    headed(out, b':', number);
}

pub(crate) fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    headed(out, b'$', length(bytes.len()));
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn nil(out: &mut Vec<u8>, protocol: Protocol) {
    out.extend_from_slice(match protocol {
        Protocol::Resp2 => b"$-1\r\n",
        Protocol::Resp3 => b"_\r\n",
    });
}

/// The beginning of a list of so many.
pub(crate) fn array(out: &mut Vec<u8>, count: usize) {
    headed(out, b'*', length(count));
}

/// The beginning of a set of so many.
pub(crate) fn set(out: &mut Vec<u8>, protocol: Protocol, count: usize) {
    headed(out, if protocol == Protocol::Resp3 { b'~' } else { b'*' }, length(count));
}

/// The beginning of a map of so many pairs.
pub(crate) fn map(out: &mut Vec<u8>, protocol: Protocol, pairs: usize) {
    match protocol {
        Protocol::Resp2 => array(out, pairs * 2),
        Protocol::Resp3 => headed(out, b'%', length(pairs)),
    }
}

/// Text that is meant to be read as it is.
pub(crate) fn verbatim(out: &mut Vec<u8>, protocol: Protocol, text: &str) {
    match protocol {
        Protocol::Resp2 => bulk(out, text.as_bytes()),
        Protocol::Resp3 => {
            headed(out, b'=', length(text.len() + 4));
            out.extend_from_slice(b"txt:");
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Five numbers in a list, put together where that is quick, and then written at once.
pub(crate) struct Integers {
    text: [u8; Self::ROOM],
    length: usize,
}

impl Integers {
    /// Of the list itself, and of five numbers of up to twenty characters.
    const ROOM: usize = 4 + 5 * (1 + 20 + 2);

    /// A list that begins with a number of one digit.
    #[inline]
    pub(crate) fn new(first: i64) -> Self {
        let mut text = [0; Self::ROOM];
        let begin = if first == 0 { b"*5\r\n:0\r\n" } else { b"*5\r\n:1\r\n" };
        if let Some(room) = text.first_chunk_mut() {
            *room = *begin;
        }
        Self { text, length: begin.len() }
    }

    #[inline]
    pub(crate) fn add(&mut self, number: i64) {
        let Some(room) = self.text.get_mut(self.length..) else { return };
        // Most numbers are short.
        let written = match (number, room) {
            (0..=9, [colon, one, end @ ..]) => {
                [*colon, *one] = [b':', b'0' + u8::try_from(number).unwrap_or(0)];
                end.first_chunk_mut().map(|end| (2, end))
            }
            (-1, [colon, minus, one, end @ ..]) => {
                [*colon, *minus, *one] = *b":-1";
                end.first_chunk_mut().map(|end| (3, end))
            }
            (number, room) => {
                let mut digits = itoa::Buffer::new();
                let digits = digits.format(number).as_bytes();
                room.split_first_mut().and_then(|(colon, room)| {
                    *colon = b':';
                    let (place, end) = room.split_at_mut_checked(digits.len())?;
                    place.copy_from_slice(digits);
                    Some((1 + digits.len(), end.first_chunk_mut()?))
                })
            }
        };
        if let Some((length, end)) = written {
            *end = *b"\r\n";
            self.length += length + 2;
        }
    }

    #[inline]
    pub(crate) fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text.get(..self.length).unwrap_or_default());
    }
}
