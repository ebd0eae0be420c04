//! What comes back, read strictly: what is no reply is a failed test.

/// One reply of RESP2 or RESP3, with the letter it began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Statuses, errors and numbers.
    Line(char, String),
    /// Strings that tell their length.
    Text(char, Vec<u8>),
    /// Arrays, sets and maps; a map's keys and values one after the other.
    Many(char, Vec<Reply>),
    /// Nothing, and how that was said.
    Nil(String),
}

impl Reply {
    /// The first of these bytes, and how many it took; nothing if it is not all there.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&bytes[1..end]);
        let (kind, mut at) = (char::from(bytes[0]), end + 2);
        let wrong = || -> ! { panic!("no reply: {}", shown(&bytes[..bytes.len().min(300)])) };
        let line = match (kind, line) {
            // Redis shows what it was sent, whatever that is.
            ('-', _) => String::from_utf8_lossy(&bytes[1..end]).into_owned(),
            (_, Ok(line)) => line.to_owned(),
            (_, Err(_)) => wrong(),
        };
        let reply = match kind {
            '+' | '-' => Self::Line(kind, line),
            ':' if line.parse::<i64>().is_ok() => Self::Line(kind, line),
            '_' if line.is_empty() => Self::Nil("_".to_owned()),
            '$' | '*' if line == "-1" => Self::Nil(format!("{kind}-1")),
            '$' | '=' => {
                let Ok(length) = line.parse::<usize>() else { wrong() };
                let text = bytes.get(at..at + length)?;
                let after = bytes.get(at + length..at + length + 2)?;
                assert_eq!(after, b"\r\n", "a string ends where it says: {}", shown(bytes));
                at += length + 2;
                Self::Text(kind, text.to_vec())
            }
            '*' | '~' | '%' => {
                let Ok(count) = line.parse::<usize>() else { wrong() };
                let count = if kind == '%' { 2 * count } else { count };
                let mut all = Vec::new();
                for _ in 0..count {
                    let (next, length) = Self::read(&bytes[at..])?;
                    all.push(next);
                    at += length;
                }
                Self::Many(kind, all)
            }
            _ => wrong(),
        };
        Some((reply, at))
    }

    #[track_caller]
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Line(':', number) => number.parse().unwrap(),
            other => panic!("a number was expected, not {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn error(&self) -> &str {
        match self {
            Self::Line('-', why) => why,
            other => panic!("an error was expected, not {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(_, text) => String::from_utf8(text.clone()).unwrap(),
            other => panic!("a string was expected, not {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Many(_, items) => items,
            other => panic!("several were expected, not {other:?}"),
        }
    }

    /// The five numbers of `CL.THROTTLE`.
    #[track_caller]
    pub(crate) fn throttle(&self) -> [i64; 5] {
        let numbers: Vec<_> = self.items().iter().map(Self::int).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("five numbers were expected, not {self:?}"))
    }

    pub(crate) fn is_status(&self, status: &str) -> bool {
        matches!(self, Self::Line('+', said) if said == status)
    }
}

/// Bytes as a person can read them.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    match text.char_indices().nth(900) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], bytes.len()),
        None => text,
    }
}
