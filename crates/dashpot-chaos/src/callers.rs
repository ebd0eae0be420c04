//! Who calls: by HTTP, by Redis's protocol, and with manners.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashpot_client::Manners;
use dashpot_testkit::redis::{Connection, Reply};
use reqwest::Client;
use reqwest_middleware::ClientBuilder;
use tokio::time::sleep;

use crate::backend::CALL;
use crate::fleet::Door;
use crate::judge::{Answer, Asked};
use crate::rules::{
    AD_HOC, ALONE_BUCKET, BY_RULES, CROWD, EACH, EVERYBODY, FLOOD, LONG, Limit, POLITE, QUEUE,
    QUOTA, THROTTLE,
};
use crate::soak::Soak;
use crate::{grpc, permits};

/// Longer than this nobody waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);
/// How long a key of the quota is the one most asked about, in seconds.
const QUOTA_LIFE: f64 = 15.0;

/// All of them, until the soak is over.
pub(crate) fn call(soak: &Arc<Soak>) {
    let fleet = [Door::First, Door::Second, Door::Gateway];
    for door in fleet {
        for limit in BY_RULES {
            http(soak, door, limit, Question::Rules);
        }
        http(soak, door, EACH, Question::Both("a"));
        http(soak, door, EACH, Question::Both("b"));
        for limit in LONG {
            http(soak, door, limit, Question::Quota);
        }
    }
    for door in Door::SERVICES {
        http(soak, door, AD_HOC, Question::AdHoc);
        throttle(soak, door);
        grpc::call(soak, door);
    }
    http(soak, Door::Gateway, QUEUE, Question::Rules);
    http(soak, Door::Gateway, QUEUE, Question::Rules);
    http(soak, Door::Alone, ALONE_BUCKET, Question::Rules);
    http(soak, Door::Alone, QUOTA, Question::Quota);
    for door in [Door::Second, Door::Second, Door::Gateway] {
        http(soak, door, CROWD, Question::Crowd);
    }
    flood(soak);
    polite(soak);
    polite(soak);
    permits::call(soak);
}

#[derive(Clone, Copy)]
enum Question {
    Rules,
    /// Two rules apply; the caller is one of two.
    Both(&'static str),
    /// One caller after another, and now and then an earlier one again.
    Quota,
    /// Each of another caller.
    Crowd,
    AdHoc,
}

impl Question {
    fn caller(self, soak: &Soak, random: &mut fastrand::Rng) -> String {
        match self {
            Self::Both(caller) => caller.to_owned(),
            Self::Quota => caller_of_quota(soak, random).to_string(),
            Self::Crowd => format!("{:016x}", random.u64(..)),
            Self::Rules | Self::AdHoc => "all".to_owned(),
        }
    }

    /// All there will be: what may be forgotten of those who come later is to be known when they come.
    fn callers(self, soak: &Soak) -> Vec<String> {
        match self {
            Self::Both(caller) => vec![caller.to_owned()],
            Self::Quota => (0..=last_of_quota(soak)).map(|caller| caller.to_string()).collect(),
            Self::Rules | Self::Crowd | Self::AdHoc => vec!["all".to_owned()],
        }
    }

    /// What counts a call, by key.
    fn limits(self, door: Door, limit: Limit, caller: &str) -> Vec<(String, Limit)> {
        // Who comes once is far from any limit, and would be counted for ever.
        let caller = if let Self::Crowd = self { "" } else { caller };
        let mut limits = vec![(key(door, &limit, caller), limit)];
        if let Self::Both(_) = self {
            limits.push((key(door, &EVERYBODY, ""), EVERYBODY));
        }
        limits
    }
}

/// A new number for a call, so that it can be told from all others.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Chance of its own for each caller, by the seed of the soak and the order in which they begin.
pub(crate) fn chance(soak: &Soak) -> fastrand::Rng {
    static CALLERS: AtomicU64 = AtomicU64::new(0);
    let caller = CALLERS.fetch_add(1, Ordering::Relaxed);
    fastrand::Rng::with_seed(soak.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(caller))
}

/// So that calls come at random, and so many a second.
pub(crate) async fn wait_for_next(random: &mut fastrand::Rng, calls: f64) {
    sleep(Duration::from_secs_f64((-random.f64().max(1e-9).ln() / calls).min(2.0))).await;
}

fn http(soak: &Arc<Soak>, door: Door, limit: Limit, question: Question) {
    let (soak, mut random) = (soak.clone(), chance(soak));
    // What is broken off is not to be sent again behind our back.
    let client = Client::builder().timeout(PATIENCE).retry(reqwest::retry::never()).build();
    let client = client.expect("a client");
    let address = soak.fleet.member(door).network.address();
    for caller in question.callers(&soak) {
        for (key, limit) in question.limits(door, limit, &caller) {
            soak.expect(&key, limit, door);
        }
    }
    soak.runtime.clone().spawn(async move {
        while !soak.is_over() {
            wait_for_next(&mut random, limit.calls).await;
            let path = if let Question::Both(_) = question { "both" } else { limit.name };
            let caller = question.caller(&soak, &mut random);
            let call = number();
            let request = if door == Door::Gateway {
                let request = client.get(format!("http://{address}/{path}"));
                request.header("x-key", &caller).header(CALL, call)
            } else {
                let question = match question {
                    Question::AdHoc => r#"{"key":"made up","limit":"15/s burst 5"}"#.to_owned(),
                    _ => format!(
                        r#"{{"request":{{"path":"/{path}","headers":{{"x-key":"{caller}"}}}}}}"#
                    ),
                };
                client.post(format!("http://{address}/v1/check")).body(question)
            };
            let sent = soak.now();
            let answer = Answer::of_http(request.send().await);
            let limits = question.limits(door, limit, &caller);
            Asked { door, limits, sent, call, by_network: true }.judge(&soak, answer);
        }
    });
}

/// What is counted together, wherever it is asked.
fn key(door: Door, limit: &Limit, caller: &str) -> String {
    let place = if door == Door::Alone { "in memory " } else { "" };
    format!("{place}{} {caller}", limit.name)
}

fn caller_of_quota(soak: &Soak, random: &mut fastrand::Rng) -> u32 {
    let newest = ((soak.now() / QUOTA_LIFE) as u32).min(last_of_quota(soak));
    if random.u8(..4) == 0 { random.u32(..=newest) } else { newest }
}

fn last_of_quota(soak: &Soak) -> u32 {
    (soak.length() / QUOTA_LIFE) as u32
}

fn throttle(soak: &Arc<Soak>, door: Door) {
    let (soak, mut random) = (soak.clone(), chance(soak));
    soak.expect(THROTTLE.name, THROTTLE, door);
    std::thread::spawn(move || {
        let mut connection = None;
        while !soak.is_over() {
            let wait = (-random.f64().max(1e-9).ln() / THROTTLE.calls).min(1.0);
            std::thread::sleep(Duration::from_secs_f64(wait));
            let sent = soak.now();
            let answer = ask_throttle(&mut connection, &soak.fleet.member(door).resp);
            let limits = vec![(THROTTLE.name.to_owned(), THROTTLE)];
            Asked { door, limits, sent, call: number(), by_network: false }.judge(&soak, answer);
        }
    });
}

fn ask_throttle(connection: &mut Option<Connection>, address: &str) -> Answer {
    // One that was closed while nobody asked is no failure.
    let kept = connection.take().filter(Connection::is_fresh);
    let mut asked = match kept.map_or_else(|| Connection::to(address), Ok) {
        Ok(connection) => connection,
        Err(error) => return Answer::Failed(error.to_string()),
    };
    match asked.command(&["CL.THROTTLE", "all", "9", "20", "1"]) {
        Ok(reply) => {
            *connection = Some(asked);
            match reply {
                Reply::Array(numbers) if numbers.first() == Some(&Reply::Int(0)) => Answer::Allowed,
                Reply::Array(numbers) if numbers.first() == Some(&Reply::Int(1)) => Answer::Denied,
                Reply::Error(error) if error.starts_with("UNAVAILABLE") => Answer::Unavailable,
                other => Answer::Unexpected(format!("{other:?}")),
            }
        }
        Err(error) => Answer::Failed(error.to_string()),
    }
}

/// Makes keys up, for the one that has room for fewer. Half of them are as good as new soon and make room for others,
/// half take their place for longer than it all lasts.
fn flood(soak: &Arc<Soak>) {
    let (soak, mut random) = (soak.clone(), chance(soak));
    let client = Client::builder().timeout(PATIENCE).build().expect("a client");
    let address = soak.fleet.member(Door::Alone).network.address();
    soak.runtime.clone().spawn(async move {
        while !soak.is_over() {
            wait_for_next(&mut random, FLOOD.calls).await;
            let limit = if random.bool() { "1/20s" } else { "1/h" };
            let checks: Vec<String> = (0..40)
                .map(|_| format!(r#"{{"key":"{}","limit":"{limit}"}}"#, random.u64(..)))
                .collect();
            let question = format!(r#"{{"checks":[{}]}}"#, checks.join(","));
            let sent = soak.now();
            let asked = client.post(format!("http://{address}/v1/check")).body(question).send();
            let answer = Answer::of_http(asked.await);
            let limits = vec![(FLOOD.name.to_owned(), FLOOD)];
            Asked { door: Door::Alone, limits, sent, call: number(), by_network: true }
                .judge(&soak, answer);
        }
    });
}

/// At the gateway, as fast as it is let.
fn polite(soak: &Arc<Soak>) {
    let soak = soak.clone();
    let manners =
        Manners::builder().patience(Duration::from_secs(5)).seed(chance(&soak).u64(..)).build();
    let client = Client::builder().timeout(PATIENCE).build().expect("a client");
    let client = ClientBuilder::new(client).with(manners).build();
    let address = soak.fleet.member(Door::Gateway).network.address();
    let key = key(Door::Gateway, &POLITE, "");
    soak.expect(&key, POLITE, Door::Gateway);
    soak.runtime.clone().spawn(async move {
        while !soak.is_over() {
            let sent = soak.now();
            // Without its number, which all attempts would have.
            let request = client.get(format!("http://{address}/polite"));
            let answer = Answer::of_manners(request.header("x-key", "polite").send().await);
            let pause = match &answer {
                Answer::Allowed => 0,
                // It would be too late for whoever came at once, too.
                Answer::GaveUp => 1000,
                _ => 50,
            };
            let limits = vec![(key.clone(), POLITE)];
            let asked =
                Asked { door: Door::Gateway, limits, sent, call: number(), by_network: true };
            asked.judge_patient(&soak, answer);
            sleep(Duration::from_millis(pause)).await;
        }
    });
}
