//! HTTP/2 by hand, frame by frame: no library would send what some of these tests do.

use std::io::{ErrorKind, Read as _, Write};
use std::net::TcpStream;

use crate::gateway::Gateway;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GO_AWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// What becomes of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was answered, to the end.
    Answered(u16, Vec<u8>),
    /// An answer began, and was broken off.
    Broken(u16),
    /// It was ended without an answer.
    Reset,
    /// The connection was.
    Closed,
    /// Nothing happened for as long as one has patience.
    Late,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields, spelled out.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.extend(length(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A number with a prefix of seven bits.
fn length(mut length: usize) -> Vec<u8> {
    if length < 127 {
        return vec![length as u8];
    }
    let mut bytes = vec![127];
    length -= 127;
    while length >= 128 {
        bytes.push(length as u8 | 128);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes
}

/// A whole request in one or two frames.
pub(crate) fn request(stream: u32, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let flags = END_HEADERS | if body.is_empty() { END_STREAM } else { 0 };
    let mut bytes = frame(HEADERS, flags, stream, &block(fields));
    if !body.is_empty() {
        bytes.extend(frame(DATA, END_STREAM, stream, body));
    }
    bytes
}

pub(crate) fn get(path: &str) -> [(&str, &str); 4] {
    [(":method", "GET"), (":scheme", "http"), (":authority", "a.example"), (":path", path)]
}

pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
}

impl Connection {
    /// Whoever asks it is sent nothing but the greeting.
    pub(crate) fn to(gateway: &Gateway) -> Self {
        let mut connection = Self { stream: gateway.caller().stream };
        connection.send(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat());
        connection
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next frame: kind, flags, stream, payload.
    pub(crate) fn frame(&mut self) -> Result<(u8, u8, u32, Vec<u8>), Ended> {
        let mut head = [0; 9];
        self.exactly(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.exactly(&mut payload)?;
        let stream = u32::from_be_bytes([head[5] & 127, head[6], head[7], head[8]]);
        match (head[3], head[4]) {
            (SETTINGS, flags) if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, b"")),
            _ => {}
        }
        Ok((head[3], head[4], stream, payload))
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), Ended> {
        self.stream.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Ended::Late,
            _ => Ended::Closed,
        })
    }

    /// How this stream ends.
    pub(crate) fn end(&mut self, wanted: u32) -> Ended {
        let (mut status, mut body) = (None, Vec::new());
        loop {
            let (kind, flags, stream, payload) = match self.frame() {
                Ok(frame) => frame,
                Err(_) if status.is_some() => return Ended::Broken(status.unwrap_or_default()),
                Err(end) => return end,
            };
            match kind {
                GO_AWAY if payload[..4] < wanted.to_be_bytes()[..] => return Ended::Closed,
                RESET if stream == wanted => return status.map_or(Ended::Reset, Ended::Broken),
                HEADERS if stream == wanted && status.is_none() => status = Some(code(&payload)),
                DATA if stream == wanted => body.extend(payload),
                _ => {}
            }
            if stream == wanted && matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                return Ended::Answered(status.unwrap_or_default(), body);
            }
        }
    }
}

/// The status in the first block of a connection: in the table, or as digits that may be compressed.
fn code(block: &[u8]) -> u16 {
    let start = block.iter().position(|byte| byte & 0xe0 != 0x20).unwrap_or(0);
    let known = [200, 204, 206, 304, 400, 404, 500];
    match block[start..] {
        [indexed @ 0x88..=0x8e, ..] => known[usize::from(indexed - 0x88)],
        [_, 3, a, b, c, ..] => {
            [a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'))
        }
        [_, length, ref rest @ ..] if length & 128 != 0 => compressed(rest),
        ref other => panic!("not a status: {}", other.escape_ascii()),
    }
}

/// Three digits of HPACK's code: 0, 1 and 2 have five bits, the others six.
fn compressed(bytes: &[u8]) -> u16 {
    let mut bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let mut code = 0;
    for _ in 0..3 {
        let five = bits.by_ref().take(5).fold(0, |digit, bit| digit << 1 | bit);
        let digit = match five {
            0..=2 => five,
            _ => (five << 1 | bits.next().unwrap_or(0)) - 0b01_1001 + 3,
        };
        code = code * 10 + u16::from(digit);
    }
    code
}

#[test]
fn digits_are_read_as_they_are_compressed() {
    // 408: 011010 00000 011110, then ones.
    assert_eq!(compressed(&[0b0110_1000, 0b0000_1111, 0b0111_1111]), 408);
    assert_eq!(code(&[0x48, 0x82, 0x10, 0x01]), 200);
    assert_eq!(code(&[0x20, 0x8c]), 400);
}
