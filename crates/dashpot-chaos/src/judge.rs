//! Whether an answer is one that may be given, and in time.

use reqwest::Response;

use crate::callers::PATIENCE;
use crate::deadline::{DEADLINE, SLACK};
use crate::fleet::Door;
use crate::rules::Limit;
use crate::soak::{Soak, lock};
use crate::troubles::Trouble;

/// How long the gateway waits for the backend.
const BACKEND: f64 = 1.0;

pub(crate) enum Answer {
    Allowed,
    Denied,
    /// The store does not answer.
    Unavailable,
    /// The backend does not.
    NoBackend,
    /// It came to nothing.
    Failed(String),
    /// A caller with manners gave it up before it was sent, or after it was refused too often.
    GaveUp,
    Unexpected(String),
}

impl Answer {
    pub(crate) fn of_http(answer: reqwest::Result<Response>) -> Self {
        match answer {
            Err(error) => Self::Failed(format!("{error:?}")),
            Ok(response) => Self::of_status(response.status().as_u16()),
        }
    }

    /// What was answered, and said.
    pub(crate) async fn with_body(answer: reqwest::Result<Response>) -> (Self, String) {
        let response = match answer {
            Err(error) => return (Self::of_http(Err(error)), String::new()),
            Ok(response) => response,
        };
        let status = response.status().as_u16();
        match response.text().await {
            Err(error) => (Self::of_http(Err(error)), String::new()),
            Ok(body) => (Self::of_status(status), body),
        }
    }

    fn of_status(status: u16) -> Self {
        match status {
            200 => Self::Allowed,
            429 => Self::Denied,
            503 => Self::Unavailable,
            502 | 504 => Self::NoBackend,
            other => Self::Unexpected(other.to_string()),
        }
    }

    pub(crate) fn of_manners(answer: Result<Response, reqwest_middleware::Error>) -> Self {
        match answer {
            Ok(response) => Self::of_http(Ok(response)),
            Err(reqwest_middleware::Error::Reqwest(error)) => Self::of_http(Err(error)),
            Err(reqwest_middleware::Error::Middleware(_)) => Self::GaveUp,
        }
    }
}

/// A call that was answered, or was not.
pub(crate) struct Asked {
    pub(crate) door: Door,
    /// What counts it, by key.
    pub(crate) limits: Vec<(String, Limit)>,
    pub(crate) sent: f64,
    pub(crate) call: u64,
    /// Whether it went by the network that breaks.
    pub(crate) by_network: bool,
}

impl Asked {
    pub(crate) fn judge(&self, soak: &Soak, answer: Answer) {
        self.judge_within(soak, answer, None);
    }

    /// For a caller who waits by itself.
    pub(crate) fn judge_patient(&self, soak: &Soak, answer: Answer) {
        // It is sent as long as five seconds have not passed, and then answered or not.
        self.judge_within(soak, answer, Some(5.0 + PATIENCE.as_secs_f64()));
    }

    fn judge_within(&self, soak: &Soak, answer: Answer, patience: Option<f64>) {
        let received = soak.now();
        let took = received - self.sent;
        let had = |trouble| soak.troubles.touched(trouble, self.sent, received);
        let door = self.door;
        let broken = had(Trouble::Gone(door));
        // Its network is slow, or it stands still.
        let slowed =
            broken || had(Trouble::Slow(door)) || (self.by_network && had(Trouble::Network(door)));
        let backend = door == Door::Gateway && had(Trouble::Backend);
        let excused = match &answer {
            Answer::Allowed | Answer::Denied => false,
            Answer::GaveUp => true,
            Answer::Unavailable => {
                let local = self.limits.iter().any(|(_, limit)| limit.local);
                if !had(Trouble::Store) && !had(Trouble::Finding(door)) && !local {
                    soak.late_without_reason();
                }
                let is_right = !local && door != Door::Alone;
                self.or_wrong(soak, is_right, "503, where there is no store to be waited for")
            }
            Answer::NoBackend => self.or_wrong(soak, backend, "502 or 504"),
            Answer::Failed(error) => self.or_wrong(soak, slowed, &format!("no answer: {error}")),
            Answer::Unexpected(what) => self.or_wrong(soak, false, what),
        };

        let waits = self.limits.iter().map(|(_, limit)| limit.waits).fold(0.0, f64::max);
        let mut besides = waits + soak.pace.late(self.sent, received);
        if backend {
            besides += BACKEND;
        }
        if patience.is_none() && !slowed {
            lock(&soak.deadlines).note(took - besides);
        }
        let at_most = patience.unwrap_or(DEADLINE) + SLACK + besides;
        if took > at_most && !slowed {
            soak.wrong(&format!(
                "{}: answered after {took:.3} s, {at_most:.3} s at most",
                self.name()
            ));
        }
        // Callers with manners send several requests.
        if door == Door::Gateway && patience.is_none() {
            let seen = soak.fleet.seen.how_often(self.call);
            if let Err(wrong) = judge_forwarded(&answer, seen, backend) {
                soak.wrong(&format!("{}: {wrong}", self.name()));
            }
        }
        if matches!(answer, Answer::Allowed) {
            for (key, limit) in &self.limits {
                soak.admitted(key, *limit, door, self.sent, received);
            }
        }
        let Some((_, limit)) = self.limits.first() else { return };
        let mut calls = lock(&soak.calls);
        let calls = calls.entry(limit.name).or_default();
        match answer {
            Answer::Allowed => calls.admitted += 1,
            Answer::Denied => calls.denied += 1,
            Answer::GaveUp => calls.given_up += 1,
            _ if excused => calls.excused += 1,
            _ => {}
        }
        if !slowed {
            calls.longest = calls.longest.max(took - waits);
        }
    }

    /// Whether it is excused; else it is told.
    fn or_wrong(&self, soak: &Soak, excused: bool, what: &str) -> bool {
        if !excused {
            soak.wrong(&format!("{}: {what}", self.name()));
        }
        excused
    }

    fn name(&self) -> String {
        let limit = self.limits.first().map_or("flood", |(key, _)| key);
        format!("{limit} at {}", self.door.name())
    }
}

/// What is wrong with how often a request came to the backend, if anything is. One whose connection breaks before the
/// backend has said a word may be sent once more.
fn judge_forwarded(answer: &Answer, seen: u32, breaks: bool) -> Result<(), String> {
    match answer {
        Answer::Denied if seen > 0 => Err("denied, and the backend saw it".to_owned()),
        Answer::Allowed if seen == 0 => Err("answered, and the backend never saw it".to_owned()),
        _ if seen > 1 + u32::from(breaks) => Err(format!("the backend saw it {seen} times")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_sees_once_who_is_let_in() {
        judge_forwarded(&Answer::Allowed, 1, false).unwrap();
        judge_forwarded(&Answer::Allowed, 2, true).unwrap();
        judge_forwarded(&Answer::Denied, 0, true).unwrap();
        judge_forwarded(&Answer::NoBackend, 1, false).unwrap();
        assert!(judge_forwarded(&Answer::Denied, 1, true).is_err());
        assert!(judge_forwarded(&Answer::Allowed, 0, true).is_err());
        assert!(judge_forwarded(&Answer::Allowed, 2, false).is_err());
        assert!(judge_forwarded(&Answer::NoBackend, 2, false).is_err());
        assert!(judge_forwarded(&Answer::Allowed, 3, true).is_err());
    }
}
