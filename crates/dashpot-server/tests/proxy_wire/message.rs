//! Requests and answers, read by somebody who takes the standard at its word.

use serde_json::Value;

/// A request or an answer. Bytes beyond ASCII are the characters of Latin-1, so that none is lost.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// The request line, or the status line.
    pub(crate) first: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
}

/// Names in lower case, and values, in the order they came.
pub(crate) type Fields = Vec<(String, String)>;

impl Message {
    /// Of a head that ends with an empty line.
    #[track_caller]
    pub(crate) fn of(head: &[u8]) -> Self {
        let text = latin(head);
        let (first, rest) = text.split_once("\r\n").unwrap();
        Self { first: first.to_owned(), fields: fields(rest), ..Self::default() }
    }

    #[track_caller]
    pub(crate) fn status(&self) -> u16 {
        let status = self.first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        let status = status.and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no status: {self:?}"))
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        all(&self.fields, name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.all(name).is_empty()
    }

    /// The value of a header that is there once.
    #[track_caller]
    pub(crate) fn one(&self, name: &str) -> &str {
        let [value] = self.all(name)[..] else { panic!("one {name} in {self:#?}") };
        value
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.all("transfer-encoding").iter().any(|value| value.eq_ignore_ascii_case("chunked"))
    }

    /// How long the body is, if it says so.
    #[track_caller]
    pub(crate) fn length(&self) -> Option<usize> {
        self.has("content-length").then(|| self.one("content-length").parse().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        latin(&self.body)
    }

    /// It is an answer of the gateway's own, with this status.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16) -> Value {
        assert_eq!(self.status(), status, "{self:?}");
        assert_eq!(self.one("content-type"), "application/problem+json", "{self:?}");
        let problem: Value = match serde_json::from_slice(&self.body) {
            Ok(problem) => problem,
            Err(error) => panic!("{error}: {self:?}"),
        };
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].is_string(), "{problem}");
        problem
    }
}

pub(crate) fn all<'a>(fields: &'a Fields, name: &str) -> Vec<&'a str> {
    let named = fields.iter().filter(|(key, _)| key == name);
    named.map(|(_, value)| value.as_str()).collect()
}

/// Lines of `name: value`, up to the empty one.
#[track_caller]
pub(crate) fn fields(lines: &str) -> Fields {
    let lines = lines.split("\r\n").take_while(|line| !line.is_empty());
    let each = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line:?}"));
        assert!(!name.is_empty() && !name.contains([' ', '\t']), "no name: {line:?}");
        assert!(!line.contains(['\r', '\n']), "two lines in one: {line:?}");
        (name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned())
    });
    each.collect()
}

pub(crate) fn latin(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}
