//! `client.py`, asked in JSON. One of it serves all tests of a process.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::start;
use serde_json::{Value, json};

use crate::tools::installed;

/// Longer than the client itself waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

type Waiting = Arc<Mutex<HashMap<u64, Sender<Value>>>>;

struct Program {
    input: Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
}

/// Ends with the process that started it.
fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rate_limit_service/client.py");
        let mut child = start(&installed("python"), |command| {
            command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        });
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let waiting = Waiting::default();
        let told = Arc::clone(&waiting);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer: Value = serde_json::from_str(&line).unwrap();
                if let Some(sender) = told.lock().unwrap().get(&answer["id"].as_u64().unwrap()) {
                    let _ = sender.send(answer);
                }
            }
            // Whoever waits is not told anything any more.
            told.lock().unwrap().clear();
            let _ = child.wait();
        });
        Program { input: Mutex::new(input), waiting, next: AtomicU64::new(0) }
    })
}

/// A call, and what is answered to it.
pub(crate) struct Call {
    id: u64,
    answers: Receiver<Value>,
}

impl Call {
    pub(crate) fn start(mut asked: Value) -> Self {
        let program = program();
        let id = program.next.fetch_add(1, Ordering::Relaxed);
        asked["id"] = json!(id);
        let (sender, answers) = mpsc::channel();
        program.waiting.lock().unwrap().insert(id, sender);
        writeln!(program.input.lock().unwrap(), "{asked}").unwrap();
        Self { id, answers }
    }

    /// The next thing it is told.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        let answer = self.answers.recv_timeout(PATIENCE);
        let answer = answer.unwrap_or_else(|error| panic!("client.py: {error}"));
        assert!(answer.get("broken").is_none(), "client.py: {answer}");
        answer
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        program().waiting.lock().unwrap().remove(&self.id);
    }
}

/// Asks, and waits for the one answer.
#[track_caller]
pub(crate) fn call(asked: Value) -> Value {
    Call::start(asked).next()
}
