//! What is asked and answered, by whichever door.

use serde_json::{Value, json};

/// The two ways in. What holds for one holds for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Grpc,
    Json,
}

/// A descriptor of these entries.
pub(crate) fn descriptor(entries: &[(&str, &str)]) -> Value {
    let entry = |(key, value): &(&str, &str)| json!({"key": key, "value": value});
    json!({"entries": entries.iter().map(entry).collect::<Vec<_>>()})
}

/// A descriptor that says itself what it costs.
pub(crate) fn costing(entries: &[(&str, &str)], hits: u64) -> Value {
    let mut descriptor = descriptor(entries);
    descriptor["hitsAddend"] = json!(hits);
    descriptor
}

pub(crate) fn request(domain: &str, descriptors: &[Value]) -> Value {
    json!({"domain": domain, "descriptors": descriptors})
}

/// An answer in words of ours: what is left out of JSON is zero.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) over: bool,
    pub(crate) statuses: Vec<Status>,
    pub(crate) headers: Vec<(String, String)>,
}

impl Answer {
    pub(crate) fn new(response: &Value) -> Self {
        let list = |name: &str| response[name].as_array().cloned().unwrap_or_default();
        let header = |header: &Value| (text(header, "key"), text(header, "value"));
        Self {
            over: is_over(&response["overallCode"]),
            statuses: list("statuses").iter().map(Status::new).collect(),
            headers: list("responseHeadersToAdd").iter().map(header).collect(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is there twice: {self:?}");
        value
    }

    /// The only descriptor's.
    #[track_caller]
    pub(crate) fn status(&self) -> &Status {
        let [status] = &self.statuses[..] else { panic!("not one status: {self:?}") };
        assert_eq!(status.over, self.over, "what holds for the one holds for all: {self:?}");
        status
    }

    /// Passes, and so much is left of the only descriptor's limit.
    #[track_caller]
    pub(crate) fn passes(&self, left: u32) {
        assert!(!self.over, "{self:?}");
        assert_eq!(self.status().remaining, left, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn is_denied(&self, left: u32) {
        assert!(self.over, "{self:?}");
        assert_eq!(self.status().remaining, left, "{self:?}");
    }

    /// Passes, because no limit is about the only descriptor.
    #[track_caller]
    pub(crate) fn is_free(&self) {
        assert_eq!(*self.status(), Status::free(), "{self:?}");
    }

    /// What is left of each, in their order.
    pub(crate) fn left(&self) -> Vec<u32> {
        self.statuses.iter().map(|status| status.remaining).collect()
    }

    /// Which of them are over their limits, in their order.
    pub(crate) fn overs(&self) -> Vec<bool> {
        self.statuses.iter().map(|status| status.over).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) over: bool,
    pub(crate) limit: Option<Limit>,
    pub(crate) remaining: u32,
    /// Whole seconds.
    pub(crate) reset: Option<u64>,
}

impl Status {
    fn new(status: &Value) -> Self {
        let whole = |duration: &str| duration.strip_suffix('s')?.parse().ok();
        let reset = status.get("durationUntilReset").map(|duration| {
            let seconds = duration.as_str().and_then(whole);
            seconds.unwrap_or_else(|| panic!("not in whole seconds: {status}"))
        });
        Self {
            over: is_over(&status["code"]),
            limit: status.get("currentLimit").filter(|limit| !limit.is_null()).map(Limit::new),
            remaining: number(status, "limitRemaining"),
            reset,
        }
    }

    /// Of a descriptor that no limit is about.
    pub(crate) fn free() -> Self {
        Self { over: false, limit: None, remaining: 0, reset: None }
    }

    #[track_caller]
    pub(crate) fn limit(&self) -> &Limit {
        self.limit.as_ref().unwrap_or_else(|| panic!("no limit: {self:?}"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) count: u32,
    pub(crate) unit: String,
    pub(crate) name: String,
}

impl Limit {
    fn new(limit: &Value) -> Self {
        let unit = limit.get("unit").map_or_else(|| "UNKNOWN".to_owned(), |_| text(limit, "unit"));
        Self { count: number(limit, "requestsPerUnit"), unit, name: text(limit, "name") }
    }
}

fn is_over(code: &Value) -> bool {
    match code.as_str() {
        Some("OK") => false,
        Some("OVER_LIMIT") => true,
        _ => panic!("neither OK nor OVER_LIMIT: {code}"),
    }
}

fn number(of: &Value, name: &str) -> u32 {
    let Some(number) = of.get(name) else { return 0 };
    let number = number.as_u64().and_then(|number| number.try_into().ok());
    number.unwrap_or_else(|| panic!("{name} is no number of 32 bits: {of}"))
}

fn text(of: &Value, name: &str) -> String {
    let Some(text) = of.get(name) else { return String::new() };
    text.as_str().unwrap_or_else(|| panic!("{name} is no text: {of}")).to_owned()
}

/// What is said instead of an answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// gRPC's word, or the status of HTTP.
    pub(crate) code: String,
    pub(crate) message: String,
}
