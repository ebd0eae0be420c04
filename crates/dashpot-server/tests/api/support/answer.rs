//! What came back.

use std::fmt;

use serde_json::Value;

/// One HTTP response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The header's value; several lines of one name would be a surprise.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let first = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "`{name}` twice: {self:?}");
        first
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("not JSON ({error}): {self:?}"),
        }
    }

    /// Holds it to a status, and hands it on.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// An answer of 200 that says `allow`.
    #[track_caller]
    pub(crate) fn allowed(self) -> Self {
        let answer = self.is(200);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
        let json = answer.json();
        assert_eq!(json["outcome"], "allow", "{answer:?}");
        assert!(json.get("reason").is_none_or(Value::is_null), "{answer:?}");
        assert!(json.get("rule").is_none_or(Value::is_null), "{answer:?}");
        assert_eq!(answer.header("retry-after"), None, "{answer:?}");
        answer
    }

    /// An answer of 429 that says `deny`, and why.
    #[track_caller]
    pub(crate) fn denied(self, reason: &str) -> Self {
        let answer = self.is(429);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
        let json = answer.json();
        assert_eq!(json["outcome"], "deny", "{answer:?}");
        assert_eq!(json["reason"], reason, "{answer:?}");
        assert!(json.get("reservation").is_none_or(Value::is_null), "{answer:?}");
        answer
    }

    /// A problem of this status, as everything that went wrong is told.
    #[track_caller]
    pub(crate) fn problem(self, status: u16) -> Self {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
        let json = answer.json();
        assert_eq!(json["status"], status, "{answer:?}");
        assert!(json["title"].as_str().is_some_and(|title| !title.is_empty()), "{answer:?}");
        assert!(json["detail"].as_str().is_some_and(|detail| detail.len() > 5), "{answer:?}");
        answer
    }

    /// A 400 about this field.
    #[track_caller]
    pub(crate) fn wrong(self, field: &str) -> Self {
        let answer = self.problem(400);
        assert_eq!(answer.json()["field"], field, "{answer:?}");
        answer
    }

    /// What it says of the n-th limit.
    #[track_caller]
    pub(crate) fn policy(&self, n: usize) -> Value {
        let json = self.json();
        let policy = json["policies"].get(n).unwrap_or_else(|| panic!("no policy {n}: {self:?}"));
        policy.clone()
    }

    /// What remains of the only limit.
    #[track_caller]
    pub(crate) fn remaining(&self) -> u64 {
        assert_eq!(self.policies(), 1, "{self:?}");
        self.policy(0)["remaining"].as_u64().unwrap()
    }

    /// How long to wait for the only limit.
    #[track_caller]
    pub(crate) fn retry_after(&self) -> f64 {
        let wait = &self.policy(0)["retry_after"];
        wait.as_f64().unwrap_or_else(|| panic!("no wait: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn policies(&self) -> usize {
        self.json()["policies"].as_array().unwrap().len()
    }

    #[track_caller]
    pub(crate) fn reservation(&self) -> String {
        let json = self.json();
        json["reservation"].as_str().unwrap_or_else(|| panic!("no token: {self:?}")).to_owned()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        for (name, value) in &self.headers {
            write!(f, "\n{name}: {value}")?;
        }
        write!(f, "\n\n{}", String::from_utf8_lossy(&self.body))
    }
}
