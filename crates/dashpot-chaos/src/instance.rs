//! One `dashpot` process, which is killed, stopped and started again where it was.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashpot_testkit::process::{await_stopped, signal, start, until};

/// Longer than this it takes nobody to start or to end, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Instance {
    program: PathBuf,
    arguments: Vec<String>,
    /// Where it says whether it lives.
    health: SocketAddr,
    log: PathBuf,
    process: Mutex<Child>,
}

impl Instance {
    /// Starts one and waits until it lives; or tells why it ended.
    pub(crate) fn start(
        program: &Path,
        arguments: Vec<String>,
        health: SocketAddr,
        log: PathBuf,
    ) -> Result<Self, String> {
        let process = Mutex::new(spawn(program, &arguments, &log));
        let instance = Self { program: program.to_owned(), arguments, health, log, process };
        instance.await_life()?;
        Ok(instance)
    }

    /// Starts it again, which has ended; waits until it lives.
    pub(crate) fn start_again(&self) {
        *self.process() = spawn(&self.program, &self.arguments, &self.log);
        self.await_life().unwrap_or_else(|ended| panic!("{ended}"));
    }

    pub(crate) fn kill(&self) {
        let mut process = self.process();
        process.kill().expect("it is ours");
        process.wait().expect("it is ours");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn terminate(&self) -> ExitStatus {
        signal(self.id(), "TERM");
        until("it to end", PATIENCE, || self.process().try_wait().expect("it is ours"))
    }

    pub(crate) fn stop(&self) {
        signal(self.id(), "STOP");
        await_stopped(self.id(), true);
    }

    pub(crate) fn go_on(&self) {
        signal(self.id(), "CONT");
        await_stopped(self.id(), false);
    }

    /// Has it read its rules again.
    pub(crate) fn reload(&self) {
        signal(self.id(), "HUP");
    }

    /// No file it writes gets any longer than this: the kernel's limit stands for a disk that is full.
    pub(crate) fn disk_full_after(&self, bytes: Option<u64>) {
        let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        let process = self.id().to_string();
        let status = Command::new("prlimit")
            .args(["--pid", &process, &format!("--fsize={limit}:unlimited")])
            .status()
            .expect("prlimit, which is part of util-linux, can be started");
        assert!(status.success(), "prlimit");
    }

    /// Bytes of memory that are its own, unless it is not there.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// The end of its log.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// What it never says, however it is treated.
    pub(crate) fn panicked(&self) -> bool {
        fs::read_to_string(&self.log).is_ok_and(|log| log.contains("panicked at"))
    }

    /// How many lines of its log say this.
    pub(crate) fn how_often_said(&self, what: &str) -> usize {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().filter(|line| line.contains(what)).count()
    }

    /// A figure of its `/metrics`, unless it does not answer.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.metrics([name]).map(|[figure]| figure)
    }

    /// Several of the same moment.
    pub(crate) fn metrics<const N: usize>(&self, names: [&str; N]) -> Option<[f64; N]> {
        let metrics = get(self.health, "/metrics")?;
        let mut figures = [0.0; N];
        for (figure, name) in figures.iter_mut().zip(names) {
            *figure =
                metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())?;
        }
        Some(figures)
    }

    pub(crate) fn lives(&self) -> bool {
        get(self.health, "/healthz").is_some()
    }

    fn await_life(&self) -> Result<(), String> {
        until("it to live", PATIENCE, || {
            let ended = self.process().try_wait().expect("it is ours");
            let ended = ended.map(|status| Err(format!("it ended with {status}:\n{}", self.log())));
            ended.or_else(|| self.lives().then_some(Ok(())))
        })
    }

    fn id(&self) -> u32 {
        self.process().id()
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let mut process = self.process();
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn spawn(program: &Path, arguments: &[String], log: &Path) -> Child {
    let log = File::options().append(true).create(true).open(log).expect("a log file");
    start("sh", |command| {
        // Without the signal that comes when a file may not get longer, which would end it before it can tell.
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(program).args(arguments);
        // Every flag can be said by the environment, and that of the caller is not meant.
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    })
}

/// What is there, if the answer is 200.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let wait = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&address, wait).ok()?;
    stream.set_read_timeout(Some(wait)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: dashpot\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 200 ").then_some(answer)
}
