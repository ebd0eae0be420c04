//! express-rate-limit, as thousands of servers have it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;

use dashpot_client::{Manners, Why};
use dashpot_testkit::process::{of_the_system, start};
use serde_json::Value;

use super::support::{Front, PATIENCE, assert_all_well, manners, readers, repeated, run};

/// What it lets through in a window.
const LIMIT: usize = 5;
/// Clocks of processes differ by as many milliseconds.
const GRAIN: f64 = 2.0;

struct Express {
    process: Child,
    url: String,
}

/// An attempt, as the server saw it. Times are in milliseconds.
#[derive(Debug)]
struct Attempt {
    call: Option<String>,
    at: f64,
    /// When it was turned away, and for how long.
    denied: Option<(f64, f64)>,
    /// When it was given what it came for.
    served: Option<f64>,
}

impl Express {
    fn start() -> Self {
        let home = readers(&["express", "express-rate-limit"]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/express.mjs");
        let mut process = start(&of_the_system("node"), |command| {
            command.args([&script, &home]).stdin(Stdio::null()).stdout(Stdio::piped());
        });
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, line) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = output.read_line(&mut line);
            let _ = sender.send(line);
        });
        let port = line.recv_timeout(PATIENCE).expect("the server says where it listens");
        let port: u16 = port.trim().parse().expect("the server starts");
        Self { process, url: format!("http://127.0.0.1:{port}") }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn attempts(&self) -> Vec<Attempt> {
        let client = ::reqwest::Client::builder().no_proxy().build().unwrap();
        let log = client.get(self.at("/log")).send().await.unwrap().text().await.unwrap();
        let log: Vec<Value> = serde_json::from_str(&log).unwrap();
        let attempt = |entry: &Value| {
            let seconds = entry["retry_after"].as_str().map(|text| text.parse::<f64>().unwrap());
            Attempt {
                call: entry["call"].as_str().map(str::to_owned),
                at: entry["at"].as_f64().unwrap(),
                denied: entry["denied"].as_f64().map(|at| (at, seconds.unwrap() * 1000.0)),
                served: entry["served"].as_f64(),
            }
        };
        log.iter().map(attempt).collect()
    }
}

impl Drop for Express {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn denials(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.denied.is_some()).count()
}

/// No call came again before it was time.
fn assert_nobody_early(attempts: &[Attempt]) {
    for (number, attempt) in attempts.iter().enumerate() {
        let Some((denied, wait)) = attempt.denied else { continue };
        let mut again = attempts[number + 1..].iter().filter(|other| other.call == attempt.call);
        let again = again.next().expect("who is turned away comes again");
        assert!(again.at >= denied + wait - GRAIN, "{again:?} after {attempt:?}");
    }
}

/// Who listens is never turned away: each answer tells what is left.
fn one_after_the_other(path: &str, front: fn(Manners) -> Front) {
    let express = Express::start();
    run(async {
        let outcomes = front(manners().build()).in_turn(&express.at(path), 12).await;
        assert_all_well(&outcomes);
        let attempts = express.attempts().await;
        assert_eq!((attempts.len(), denials(&attempts)), (12, 0), "{attempts:?}");
        let waited = outcomes.iter().filter(|it| !it.report.waited_for(Why::Quota).is_zero());
        // The sixth and the eleventh, unless the machine stood still for a whole window.
        assert!((1..=2).contains(&waited.count()), "{outcomes:?}");
    });
}

/// Those who go before anything was told may be turned away, and nobody else.
fn all_at_once(path: &str, front: fn(Manners) -> Front) {
    let express = Express::start();
    run(async {
        let outcomes = front(manners().build()).at_once(&express.at(path), 12).await;
        assert_all_well(&outcomes);
        let attempts = express.attempts().await;
        assert!(denials(&attempts) <= 12 - LIMIT, "{attempts:?}");
        assert_eq!(denials(&attempts), repeated(&outcomes), "{attempts:?}");
        assert_nobody_early(&attempts);
    });
}

#[test]
fn draft_6_is_listened_to() {
    one_after_the_other("/draft-6", Front::reqwest);
}

#[test]
fn draft_7_is_listened_to() {
    one_after_the_other("/draft-7", Front::tower);
}

#[test]
fn draft_8_is_listened_to() {
    one_after_the_other("/draft-8", Front::reqwest);
}

#[test]
fn legacy_headers_are_listened_to() {
    one_after_the_other("/legacy", Front::tower);
}

#[test]
fn a_crowd_is_turned_away_once_under_draft_6() {
    all_at_once("/draft-6", Front::tower);
}

#[test]
fn a_crowd_is_turned_away_once_under_draft_7() {
    all_at_once("/draft-7", Front::reqwest);
}

#[test]
fn a_crowd_is_turned_away_once_under_draft_8() {
    all_at_once("/draft-8", Front::tower);
}

#[test]
fn a_crowd_is_turned_away_once_under_legacy_headers() {
    all_at_once("/legacy", Front::reqwest);
}

#[test]
fn of_two_limits_in_two_lines_both_are_listened_to() {
    let express = Express::start();
    run(async {
        let outcomes = Front::reqwest(manners().build()).in_turn(&express.at("/two"), 11).await;
        assert_all_well(&outcomes);
        let attempts = express.attempts().await;
        assert_eq!((attempts.len(), denials(&attempts)), (11, 0), "{attempts:?}");
    });
}

#[test]
fn after_others_used_it_up_nobody_comes_before_it_is_time_and_then_one_goes_first() {
    let express = Express::start();
    run(async {
        let url = express.at("/silent");
        let rude = ::reqwest::Client::builder().no_proxy().build().unwrap();
        let rude: Vec<_> = (0..LIMIT).map(|_| tokio::spawn(rude.get(&url).send())).collect();
        for call in rude {
            assert_eq!(call.await.unwrap().unwrap().status(), 200);
        }
        let outcomes = Front::tower(manners().build()).at_once(&url, LIMIT).await;
        assert_all_well(&outcomes);
        let attempts = express.attempts().await;
        assert_nobody_early(&attempts);
        // All waits are over before the first comes again.
        let denied = attempts.iter().filter_map(|attempt| attempt.denied);
        let latest = denied.map(|(at, wait)| at + wait).max_by(f64::total_cmp);
        let latest = latest.expect("there was nothing left");
        let is_again =
            |number: &usize| attempts[..*number].iter().any(|it| it.call == attempts[*number].call);
        let again = (LIMIT..attempts.len()).filter(is_again);
        let again: Vec<_> = again.map(|number| &attempts[number]).collect();
        for (number, attempt) in again.iter().enumerate() {
            assert!(attempt.at >= latest - GRAIN, "{attempt:?} of {attempts:?}");
            // One goes to see, and when that was let in two may be on their way, and so on.
            let is_served = |it: &&&Attempt| it.served.is_some_and(|at| at <= attempt.at);
            let served = again[..number].iter().filter(|it| is_served(it)).count();
            assert!(number - served <= served, "{attempt:?} of {attempts:?}");
        }
    });
}
