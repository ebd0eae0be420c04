//! HTTP/1.1 as strictly as it can be read. Whatever a gateway says to its backend and to its callers
//! has to stand it: then nobody can read it in another way.

use std::fmt::{self, Debug, Write};

pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// A request or an answer.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) line: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
}

/// Why there is no message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// There is more to come.
    Part,
    Wrong(String),
}

pub(crate) type Read<T> = Result<T, Stop>;

pub(crate) fn wrong<T>(what: impl Into<String>) -> Read<T> {
    Err(Stop::Wrong(what.into()))
}

impl Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.line)?;
        for (name, value) in self.fields.iter().chain(&self.trailers) {
            write!(f, " [{name}: {}]", value.escape_ascii())?;
        }
        write!(f, " \"{}\"", self.body[..self.body.len().min(500)].escape_ascii())
    }
}

impl Message {
    pub(crate) fn all(&self, name: &str) -> Vec<&[u8]> {
        let named = self.fields.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice()).collect()
    }

    /// Whether a list has this word in it.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        let values = self.all(name);
        let mut words = values.iter().flat_map(|value| value.split(|byte| *byte == b','));
        words.any(|value| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The words of the first line.
    pub(crate) fn word(&self, nth: usize) -> &str {
        self.line.split(' ').nth(nth).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> u16 {
        self.word(1).parse().unwrap_or(0)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A request in short: `POST /path body`.
    pub(crate) fn short(&self) -> String {
        let mut short = format!("{} {}", self.word(0), self.word(1));
        if !self.body.is_empty() {
            let _ = write!(short, " {}", self.body.escape_ascii());
        }
        short
    }
}

pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    /// Line feeds alone end lines, too.
    pub(crate) lenient: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn strict(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, lenient: false }
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> Read<&'a [u8]> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Stop::Part)?;
        self.at += end + 1;
        let line = match rest[..end].strip_suffix(b"\r") {
            Some(line) => line,
            None if self.lenient => &rest[..end],
            None => return wrong(format!("a line feed alone: {}", rest[..end].escape_ascii())),
        };
        match line.iter().all(|byte| is_printed(*byte) || matches!(byte, b' ' | b'\t')) {
            true => Ok(line),
            false => wrong(format!("bytes that no line has: {}", line.escape_ascii())),
        }
    }

    /// Fields up to the empty line.
    pub(crate) fn fields(&mut self) -> Read<Fields> {
        let mut fields = Fields::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(fields);
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                return wrong(format!("no colon: {}", line.escape_ascii()));
            };
            let name = &line[..colon];
            if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
                return wrong(format!("not a name: {}", name.escape_ascii()));
            }
            let name = String::from_utf8_lossy(name).into_owned();
            fields.push((name, line[colon + 1..].trim_ascii().to_vec()));
        }
    }

    pub(crate) fn exactly(&mut self, count: usize) -> Read<Vec<u8>> {
        match self.rest().get(..count) {
            Some(some) => {
                self.at += count;
                Ok(some.to_vec())
            }
            None => Err(Stop::Part),
        }
    }

    /// Chunks up to the last, and the trailers.
    pub(crate) fn chunks(&mut self) -> Read<(Vec<u8>, Fields)> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = if self.lenient { size.trim_ascii_end() } else { size };
            match number(size, 16) {
                Some(0) => break,
                Some(size) => body.extend(self.exactly(size)?),
                None => return wrong(format!("not a size: {}", line.escape_ascii())),
            }
            match self.exactly(2)?.as_slice() {
                b"\r\n" => {}
                other => return wrong(format!("a chunk without an end: {}", other.escape_ascii())),
            }
        }
        let trailers = self.fields()?;
        for name in ["content-length", "transfer-encoding", "host", "connection"] {
            if !self.lenient && trailers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name)) {
                return wrong(format!("{name} as a trailer"));
            }
        }
        Ok((body, trailers))
    }
}

/// Digits, and nothing but digits.
pub(crate) fn number(text: &[u8], radix: u32) -> Option<usize> {
    let digits = text.iter().all(|byte| char::from(*byte).is_digit(radix));
    let text = str::from_utf8(text).ok().filter(|text| digits && !text.is_empty())?;
    usize::from_str_radix(text, radix).ok()
}

pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Neither a blank nor a control character.
pub(crate) fn is_printed(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}
