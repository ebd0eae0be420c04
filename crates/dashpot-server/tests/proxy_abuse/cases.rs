//! Cases of what a caller may send, and what may come of it.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::backend::{Backend, Seen};
use crate::caller::{Caller, Failure};
use crate::echo;
use crate::gateway::Gateway;

/// What follows a case: it closes the connection, if it is read at all.
const LAST: &str = "GET /last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// These requests reach the backend and are answered; then the connection is closed.
    Passed(Vec<String>),
    /// The same, but the last answer is 400.
    Until(Vec<String>),
    /// Nothing reaches the backend, and the answer is one of these; 0 is none. Then it is closed.
    Refused(Vec<u16>),
    /// Nothing whole reaches the backend, and no answer says that all is well.
    Broken,
    /// The same, but what follows is read and answered.
    Skipped,
}

pub(crate) struct Case {
    what: String,
    sent: Vec<u8>,
    /// Whether the caller says that there is no more.
    ends: bool,
    may: Vec<Outcome>,
}

/// What it is told to send is followed by one more request.
pub(crate) fn case(what: impl Into<String>, sent: impl AsRef<[u8]>) -> Case {
    let sent = [sent.as_ref(), LAST.as_bytes()].concat();
    Case { what: what.into(), sent, ends: false, may: Vec::new() }
}

/// The same, and the caller has no more to say after it.
pub(crate) fn cut(what: impl Into<String>, sent: impl AsRef<[u8]>) -> Case {
    let sent = sent.as_ref().to_vec();
    Case { what: what.into(), sent, ends: true, may: Vec::new() }
}

impl Case {
    /// As 400, as the documentation says.
    pub(crate) fn refused(self) -> Self {
        self.refused_with(&[400])
    }

    pub(crate) fn refused_with(mut self, statuses: &[u16]) -> Self {
        self.may.push(Outcome::Refused(statuses.to_vec()));
        self
    }

    /// These, and what follows.
    pub(crate) fn passed(self, requests: &[&str]) -> Self {
        self.passed_and_closed(&[requests, &["GET /last"]].concat())
    }

    /// These, and nothing of what follows.
    pub(crate) fn passed_and_closed(mut self, requests: &[&str]) -> Self {
        let requests = requests.iter().map(|request| (*request).to_owned()).collect();
        self.may.push(Outcome::Passed(requests));
        self
    }

    /// These, and then it is refused.
    pub(crate) fn passed_until_refused(mut self, requests: &[&str]) -> Self {
        let requests = requests.iter().map(|request| (*request).to_owned()).collect();
        self.may.push(Outcome::Until(requests));
        self
    }

    pub(crate) fn skipped(mut self) -> Self {
        self.may.push(Outcome::Skipped);
        self
    }

    pub(crate) fn broken(mut self) -> Self {
        self.may.push(Outcome::Broken);
        self
    }
}

pub(crate) struct Scene {
    pub(crate) backend: Backend,
    pub(crate) gateway: Gateway,
}

impl Scene {
    /// One thread, so that whoever comes next uses the same connections to the backend.
    pub(crate) fn start() -> Self {
        let backend = echo::backend();
        let timeouts = ["--client-timeout", "3s", "--response-timeout", "5s"];
        let arguments = [&["--threads", "1", "--max-body", "100000"], &timeouts[..]].concat();
        let gateway = Gateway::start(backend.address, &arguments);
        Self { backend, gateway }
    }

    /// Sends it, and says what is wrong with what comes of it.
    pub(crate) fn fails(&self, case: &Case) -> Option<String> {
        let told = Told::by(&mut self.gateway.caller(), &case.sent, case.ends);
        let seen = self.backend.take();
        let right = case.may.iter().any(|outcome| told.is(outcome, &seen));
        let mut wrong = Vec::new();
        if !right {
            wrong.push(format!("{:?}, and the backend got {seen:?}, and not {:?}", told, case.may));
        }
        if let Err(poisoned) = self.is_sound() {
            wrong.push(poisoned);
        }
        let sent = case.sent.get(..400).unwrap_or(&case.sent).escape_ascii().to_string();
        (!wrong.is_empty()).then(|| format!("{} ({sent}): {}", case.what, wrong.join("; ")))
    }

    /// Whoever comes next gets what belongs to them.
    pub(crate) fn is_sound(&self) -> Result<(), String> {
        for path in ["/marker/1", "/marker/2"] {
            let answer = self.gateway.caller().get(path);
            let right = answer.as_ref().is_ok_and(|answer| answer.text() == format!("GET {path}"));
            let seen = self.backend.take();
            let asked = Seen::Whole(format!("GET {path}"));
            // Half a request of before may have ended just now.
            if !right || seen.iter().any(|one| *one != asked && !matches!(one, Seen::Part(_))) {
                return Err(format!("the next one got {answer:?}, and the backend {seen:?}"));
            }
        }
        Ok(())
    }
}

/// What a caller heard.
#[derive(Debug)]
pub(crate) struct Told {
    answers: Vec<(u16, String)>,
    rest: Failure,
}

impl Told {
    pub(crate) fn by(caller: &mut Caller, bytes: &[u8], ends: bool) -> Self {
        caller.patience(Duration::from_secs(10));
        let mut writer = caller.stream.try_clone().unwrap();
        // What is refused early may not be read to its end, and the answer is to be read before that.
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = writer.write_all(bytes);
                if ends {
                    let _ = writer.shutdown(Shutdown::Write);
                }
            });
            let mut answers = Vec::new();
            loop {
                match caller.answer() {
                    Ok(answer) => answers.push((answer.status(), answer.text())),
                    Err(rest) => return Self { answers, rest },
                }
            }
        })
    }

    fn is(&self, outcome: &Outcome, seen: &[Seen]) -> bool {
        let broken = matches!((outcome, &self.rest), (Outcome::Broken, Failure::Broken(_)));
        if self.rest != Failure::Gone && !broken {
            return false;
        }
        let whole = |requests: &[String]| {
            seen.len() == requests.len()
                && seen
                    .iter()
                    .zip(requests)
                    .all(|(seen, wanted)| *seen == Seen::Whole(wanted.clone()))
        };
        match outcome {
            Outcome::Passed(requests) => {
                let answers = self.answers.iter().map(|(_, text)| text);
                whole(requests)
                    && answers.eq(requests)
                    && self.answers.iter().all(|(status, _)| *status == 200)
            }
            Outcome::Until(requests) => {
                let mut answers = self.answers.clone();
                let refused = answers.pop().is_some_and(|(status, _)| status == 400);
                let texts = answers.iter().map(|(_, text)| text);
                whole(requests) && refused && texts.eq(requests)
            }
            Outcome::Refused(statuses) => {
                let status = self.answers.first().map_or(0, |(status, _)| *status);
                seen.is_empty() && self.answers.len() < 2 && statuses.contains(&status)
            }
            Outcome::Skipped => {
                let last = Seen::Whole("GET /last".to_owned());
                let parts = seen.iter().all(|seen| *seen == last || matches!(seen, Seen::Part(_)));
                let statuses: Vec<_> = self.answers.iter().map(|(status, _)| *status).collect();
                parts && matches!(statuses[..], [400..=499, 200])
            }
            Outcome::Broken => {
                let parts = seen.iter().all(|seen| matches!(seen, Seen::Part(_)));
                parts
                    && self.answers.len() < 2
                    && self.answers.iter().all(|(status, _)| *status >= 400)
            }
        }
    }
}

/// Sends them all, one after the other, and tells of all that went wrong.
pub(crate) fn all(cases: Vec<Case>) {
    let mut scene = Scene::start();
    let wrong: Vec<_> = cases.iter().filter_map(|case| scene.fails(case)).collect();
    scene.gateway.is_well();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}
