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
