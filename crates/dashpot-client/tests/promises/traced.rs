//! What `tracing` tells: why calls wait, are made again, and are turned away; and no secret.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use dashpot_client::Pace;
use tracing_subscriber::fmt::MakeWriter;

use super::{HERE, Scene};
use crate::common::{answer, get, secs};

/// What was written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// The lines that are told at this level, and above it, while something is done.
fn told(level: tracing::Level, what: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(level)
        .with_ansi(false)
        .without_time()
        .with_target(false);
    tracing::subscriber::with_default(subscriber.finish(), what);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// One who is turned away, and one who waits behind it, and one who would have to wait for too long.
fn scene() {
    let pace = Pace::every(secs(100)).unwrap();
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(429, &[("retry-after", "10")]),
            1 => answer(503, &[]),
            _ => answer(200, &[]),
        },
        |builder| {
            builder.lanes(move |call| match call.uri.path() {
                "/slow" => call.lane().and_header(call, "authorization").and("slow").pace(&pace),
                _ => call.lane().and_header(call, "authorization"),
            })
        },
    );
    let secret = |uri: &str| {
        let mut request = get(uri);
        request.headers_mut().insert("authorization", "Bearer hunter2".parse().unwrap());
        request
    };
    scene.ask(secret(HERE));
    scene.ask(secret("http://example.com/slow"));
    let mut late = secret("http://example.com/slow");
    late.extensions_mut().insert(dashpot_client::Patience(secs(1)));
    scene.ask(late);
}

#[test]
fn denials_are_told_at_info() {
    let lines = told(tracing::Level::INFO, scene);
    let [denial] = &lines[..] else { panic!("{lines:#?}") };
    assert!(denial.starts_with("INFO the server turned a call away"), "{denial}");
    assert!(denial.contains(r#"lane="http://example.com" status=429 wait=10."#), "{denial}");
}

#[test]
fn waits_and_attempts_are_told_at_debug() {
    let lines = told(tracing::Level::DEBUG, scene);
    let has = |parts: &[&str]| {
        let is_there = |line: &&String| parts.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(|line| is_there(&line)), "{parts:?} in {lines:#?}");
    };
    has(&[
        "DEBUG a call waits",
        r#"lane="http://example.com""#,
        r#"why="retry-after""#,
        "wait=Some(10.",
    ]);
    has(&["a call is made again", "attempt=1", "status=429"]);
    has(&["a call is made again", "attempt=2", "status=503"]);
    has(&["a call is not sent", "longer than it may"]);
    assert!(lines.iter().all(|line| !line.contains("hunter2")), "{lines:#?}");
}
