//! Servers that truly have a quota and tell about it: few are turned away, and nearly all of it is used.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dashpot::{Clock, Timestamp};
use dashpot_client::Pace;
use tower::ServiceExt;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, answer, get, millis, secs};

/// How the server counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// All at once, at the end of each window.
    Fixed,
    /// A bucket that fills up within a window.
    Steady,
}

/// How it tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Ietf,
    Draft07,
    Draft03,
    XEpoch,
    XMillis,
    XDashed,
    XRfc3339,
    Requests,
    Anthropic,
}

/// A quota, as it is enforced.
#[derive(Debug)]
pub(super) struct Enforced {
    kind: Kind,
    limit: u64,
    window: Duration,
    start: Timestamp,
    /// Which window it was, and what was used in it.
    current: (u128, u64),
    /// What is in the bucket, and since when.
    level: (f64, Timestamp),
    pub(super) let_in: usize,
    pub(super) denied: usize,
}

impl Enforced {
    pub(super) fn new(kind: Kind, limit: u64, window: Duration, start: Timestamp) -> Self {
        let level = (limit as f64, start);
        Self { kind, limit, window, start, current: (0, 0), level, let_in: 0, denied: 0 }
    }

    /// Whether one is let in, what is left, and how long until all is there.
    pub(super) fn take(&mut self, now: Timestamp) -> (bool, u64, Duration) {
        let (is_in, left, reset) = match self.kind {
            Kind::Fixed => {
                let since = now.since(self.start);
                let number = since.as_nanos() / self.window.as_nanos();
                if number != self.current.0 {
                    self.current = (number, 0);
                }
                let is_in = self.current.1 < self.limit;
                self.current.1 += u64::from(is_in);
                let end = self.window * (number as u32 + 1);
                (is_in, self.limit - self.current.1, end - since)
            }
            Kind::Steady => {
                let (level, at) = self.level;
                let rate = self.limit as f64 / self.window.as_secs_f64();
                let grown = level + now.since(at).as_secs_f64() * rate;
                let mut level = grown.min(self.limit as f64);
                // A nanosecond is no reason to turn somebody away.
                let is_in = level >= 1.0 - 1e-6;
                level -= if is_in { 1.0 } else { 0.0 };
                self.level = (level.max(0.0), now);
                let reset = (self.limit as f64 - level) / rate;
                (is_in, level as u64, Duration::from_secs_f64(reset))
            }
        };
        match is_in {
            true => self.let_in += 1,
            false => self.denied += 1,
        }
        (is_in, left, reset)
    }
}

fn rfc3339(at: Timestamp) -> String {
    // By the second, rounded up: that is how it is sent.
    let seconds = at.as_nanos().div_ceil(1_000_000_000) as i64;
    jiff::Timestamp::from_second(seconds).unwrap().to_string()
}

pub(super) fn tell(
    form: Form,
    quota: &Enforced,
    left: u64,
    reset: Duration,
    now: Timestamp,
) -> Vec<[String; 2]> {
    let seconds = (reset.as_nanos().div_ceil(1_000_000_000)).to_string();
    let at = now.after(reset);
    let at_second = at.as_nanos().div_ceil(1_000_000_000).to_string();
    let (limit, left) = (quota.limit.to_string(), left.to_string());
    let window = quota.window.as_secs();
    let three = |names: [&str; 3], reset: String| {
        let [first, second, third] = names.map(str::to_owned);
        vec![[first, limit.clone()], [second, left.clone()], [third, reset]]
    };
    let x = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
    match form {
        Form::Ietf => vec![
            ["ratelimit-policy".into(), format!("\"all\";q={limit};w={window}")],
            ["ratelimit".into(), format!("\"all\";r={left};t={seconds}")],
        ],
        Form::Draft07 => vec![
            ["ratelimit-policy".into(), format!("{limit};w={window}")],
            ["ratelimit".into(), format!("limit={limit}, remaining={left}, reset={seconds}")],
        ],
        Form::Draft03 => {
            three(["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"], seconds)
        }
        Form::XEpoch => three(x, at_second),
        Form::XMillis => three(x, at.as_nanos().div_ceil(1_000_000).to_string()),
        Form::XRfc3339 => three(x, rfc3339(at)),
        Form::XDashed => {
            three(["x-rate-limit-limit", "x-rate-limit-remaining", "x-rate-limit-reset"], seconds)
        }
        Form::Requests => three(
            [
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                "x-ratelimit-reset-requests",
            ],
            match reset.as_nanos().div_ceil(1_000_000) {
                short @ ..1000 => format!("{short}ms"),
                long => {
                    let seconds = long as f64 / 1000.0;
                    match seconds {
                        60.0.. => format!("{}m{:.3}s", (seconds / 60.0) as u64, seconds % 60.0),
                        _ => format!("{seconds:.3}s"),
                    }
                }
            },
        ),
        Form::Anthropic => three(
            [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
            rfc3339(at),
        ),
    }
}

/// What came of many who called as often as they could.
struct Tally {
    let_in: usize,
    denied: usize,
    /// The most that the quota would have let in.
    most: usize,
}

/// Some who call one after the other, for so many windows, at a server so far away.
fn rush(kind: Kind, form: Form, limit: u64, window: Duration, who: usize, seed: u64) -> Tally {
    let windows = 20;
    let quota = Arc::new(Mutex::new(None::<Enforced>));
    let enforced = quota.clone();
    let handler = move |arrival: &Arrival| -> Answer {
        let mut enforced = enforced.lock().unwrap();
        let quota = enforced.get_or_insert_with(|| Enforced::new(kind, limit, window, arrival.at));
        let (is_in, left, reset) = quota.take(arrival.at);
        let headers = tell(form, quota, left, reset, arrival.at);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|[name, value]| (name.as_str(), value.as_str())).collect();
        answer(if is_in { 200 } else { 429 }, &headers)
    };
    let mut scene = Scene::new(handler, |builder| {
        builder
            .seed(seed)
            .patience(secs(100_000))
            .attempts(100)
            .retry_floor("1000/s".parse().unwrap())
            .pace(Pace::default().concurrent(who as u64))
    })
    .way(millis(20));
    // The first answer is known before all others begin.
    scene.ask(get(HERE));
    let end = scene.world.at(window * windows);
    for _ in 0..who {
        let (client, clock) = (scene.client(), scene.world.clock.clone());
        scene.world.spawn(async move {
            while clock.now() < end {
                client.clone().oneshot(get(HERE)).await.unwrap();
            }
        });
    }
    scene.world.run_until(window * windows);
    let quota = quota.lock().unwrap().take().unwrap();
    let most = limit as usize * windows as usize;
    let most = if kind == Kind::Steady { most + limit as usize } else { most };
    Tally { let_in: quota.let_in, denied: quota.denied, most }
}

fn check(kind: Kind, form: Form) {
    for (limit, window, who) in [(100, 10, 8), (60, 60, 20), (300, 30, 30), (5, 10, 3)] {
        for seed in 0..3 {
            let Tally { let_in, denied, most } = rush(kind, form, limit, secs(window), who, seed);
            let case = format!("{form:?}, {kind:?}, {limit} in {window} s for {who}, seed {seed}");
            assert_eq!(denied, 0, "turned away of {let_in}: {case}");
            assert!(let_in * 10 >= most * 8, "only {let_in} of {most}: {case}");
        }
    }
}

#[test]
fn by_the_ietf_draft() {
    check(Kind::Fixed, Form::Ietf);
}

#[test]
fn by_draft_seven() {
    check(Kind::Fixed, Form::Draft07);
}

#[test]
fn by_drafts_three_to_six() {
    check(Kind::Fixed, Form::Draft03);
}

#[test]
fn by_x_headers_with_seconds_since_1970() {
    check(Kind::Fixed, Form::XEpoch);
}

#[test]
fn by_x_headers_with_milliseconds_since_1970() {
    check(Kind::Fixed, Form::XMillis);
}

#[test]
fn by_x_headers_with_dates() {
    check(Kind::Fixed, Form::XRfc3339);
}

#[test]
fn by_x_headers_with_one_more_dash() {
    check(Kind::Fixed, Form::XDashed);
}

#[test]
fn by_headers_for_requests_that_fill_up_steadily() {
    check(Kind::Steady, Form::Requests);
}

#[test]
fn by_anthropics_headers_that_fill_up_steadily() {
    check(Kind::Steady, Form::Anthropic);
}

#[test]
fn by_the_ietf_draft_of_a_bucket() {
    // The form says nothing about how it fills up: slower, but nobody is to be turned away.
    for seed in 0..3 {
        let tally = rush(Kind::Steady, Form::Ietf, 60, secs(60), 10, seed);
        assert_eq!(tally.denied, 0);
        assert!(tally.let_in * 2 >= tally.most, "{} of {}", tally.let_in, tally.most);
    }
}
