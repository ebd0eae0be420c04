//! A server to ask, a client that sends the bytes it is told, and answers to look into.

mod answer;
mod client;
pub(crate) mod fields;
mod metrics;
mod server;

pub(crate) use answer::Answer;
pub(crate) use client::Client;
pub(crate) use metrics::Metrics;
pub(crate) use server::Server;

use std::thread;
use std::time::{Duration, Instant};

/// The longest that anything may take before the test says what it waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Asks again until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Lets real time pass: the server is another process, and its clock cannot be set.
pub(crate) fn pass(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
