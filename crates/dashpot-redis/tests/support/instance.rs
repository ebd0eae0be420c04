//! Other processes, started from this very program.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use dashpot_testkit::RedisServer;

/// Where they find Redis.
pub(crate) const URL: &str = "DASHPOT_TEST_URL";

/// Another process with a store of its own, which does as it is told line by line.
pub(crate) struct Instance {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Instance {
    /// Starts the test of this name, which is otherwise ignored.
    pub(crate) fn start(server: &RedisServer, test: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "--nocapture", test]);
        command.env(URL, server.url()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (orders, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut instance = Self { process, orders, answers: BufReader::new(answers) };
        assert_eq!(instance.answer(), 0, "it is ready");
        instance
    }

    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> u64 {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "it has ended");
            // What the test harness writes may be on the same line.
            if let Some((_, answer)) = line.split_once("answer: ") {
                return answer.trim().parse().unwrap();
            }
        }
    }

    pub(crate) fn ask(&mut self, order: &str) -> u64 {
        self.order(order);
        self.answer()
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
