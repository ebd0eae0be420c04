//! What came of a simulation, for people and machines.

use std::fmt::Write;
use std::time::Duration;

use dashpot_simulate::{Run, picture};
use schemars::JsonSchema;
use serde::Serialize;

use crate::seconds::Seconds;
use crate::table::human;

/// What came of a simulation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Simulated {
    /// The traffic, in words.
    traffic: String,
    /// How much time was simulated.
    seconds: Seconds,
    /// One for each limit and algorithm.
    runs: Vec<ToldRun>,
    /// Which limits and algorithms do not go together, if all were wanted.
    left_out: Vec<String>,
    /// A picture, if it is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    svg: Option<String>,
    #[serde(skip)]
    drawn: Vec<Run>,
}

/// What became of the traffic at one limit by one algorithm.
#[derive(Debug, Serialize, JsonSchema)]
struct ToldRun {
    limit: String,
    algorithm: String,
    /// Places in its queue, if it has one.
    queue: Option<u64>,
    /// How many asked.
    asked: u64,
    /// How many of them passed, at once or later.
    admitted: u64,
    denied: u64,
    /// The most units that left for one caller within any window's length; of a concurrent limit, the most at once.
    worst_window: u64,
    /// How many the limit says; nothing if it says none.
    of: Option<u64>,
    /// 99 of 100 that passed waited no longer than this.
    p99_delay: Seconds,
    longest_delay: Seconds,
    callers: usize,
    callers_denied: usize,
}

impl Simulated {
    pub(crate) fn new(traffic: String, runs: Vec<Run>, left_out: Vec<String>) -> Self {
        let told = |run: &Run| ToldRun {
            limit: run.policy.quota().to_string(),
            algorithm: run.policy.algorithm().to_string(),
            queue: run.policy.queue(),
            asked: run.asked,
            admitted: run.admitted,
            denied: run.denied,
            worst_window: run.worst.units,
            of: run.policy.quota().count(),
            p99_delay: Seconds(run.p99_delay),
            longest_delay: Seconds(run.longest_delay),
            callers: run.callers,
            callers_denied: run.callers_denied,
        };
        Self {
            traffic,
            seconds: Seconds(runs.first().map(|run| run.length).unwrap_or_default()),
            runs: runs.iter().map(told).collect(),
            left_out,
            svg: None,
            drawn: runs,
        }
    }

    /// The picture.
    pub(crate) fn picture(&self) -> String {
        picture(&self.traffic, &self.drawn)
    }

    /// The same with its picture.
    pub(crate) fn with_picture(mut self) -> Self {
        self.svg = Some(self.picture());
        self
    }

    /// For people.
    pub(super) fn table(&self) -> String {
        let callers = self.runs.iter().map(|run| run.callers).max().unwrap_or(0);
        let mut text = format!(
            "{}, for {}, by {callers} {}\n\n",
            self.traffic,
            human(self.seconds.0),
            if callers == 1 { "caller" } else { "callers" },
        );
        let names: Vec<String> = self.runs.iter().map(ToldRun::name).collect();
        let wide = names.iter().map(String::len).chain([9]).max().unwrap_or(9);
        let _ = writeln!(
            text,
            "{:<wide$}     asked  admitted    denied  worst window   p99 delay  callers denied",
            "limit"
        );
        for (name, run) in names.iter().zip(&self.runs) {
            let _ = writeln!(
                text,
                "{name:<wide$}  {:>8}  {:>8}  {:>8}  {:>12}  {:>10}  {:>14}",
                run.asked,
                run.admitted,
                run.denied,
                run.worst(),
                delay(run.p99_delay.0),
                run.callers_denied,
            );
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "\nleft out: {left_out}");
        }
        text
    }
}

impl ToldRun {
    fn name(&self) -> String {
        let queue = self.queue.map(|places| format!(" queue {places}")).unwrap_or_default();
        format!("{} {}{queue}", self.limit, self.algorithm)
    }

    /// The most in a window's length, and how many times the limit that is.
    fn worst(&self) -> String {
        match self.of.filter(|of| *of > 0) {
            Some(of) => {
                format!("{} ({:.2}×)", self.worst_window, self.worst_window as f64 / of as f64)
            }
            None => self.worst_window.to_string(),
        }
    }
}

fn delay(time: Duration) -> String {
    if time.is_zero() { "-".to_owned() } else { human(time) }
}
