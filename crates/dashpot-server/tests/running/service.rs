//! The program, started and ended.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE};

/// A directory that goes when it is dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("dashpot-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // What an earlier process of the same number left behind, if it was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Puts a file in the place of another in one step, as careful editors do.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        let new = self.write("replacement", text);
        fs::rename(new, self.0.join(name)).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `dashpot serve` with nothing in its environment but a port of its own, in a directory.
pub(crate) fn command<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.arg("serve").args(arguments).env_clear().current_dir(directory).stdin(Stdio::null());
    // Many serve at once.
    command.env("DASHPOT_GRPC_LISTEN", "127.0.0.1:0").env("DASHPOT_RESP_LISTEN", "127.0.0.1:0");
    command
}

/// What becomes of it if it cannot start.
pub(crate) fn refusal<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> (Option<i32>, String) {
    ended(command(directory, arguments))
}

pub(crate) fn ended(mut command: Command) -> (Option<i32>, String) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    let (sender, output) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = output.recv_timeout(PATIENCE) else {
        signal(process, "KILL");
        panic!("it runs: {command:?}");
    };
    let Output { status, stdout, stderr } = output.unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert!(!String::from_utf8_lossy(&stdout).contains("listening"), "{stdout:?} {told}");
    (status.code(), told)
}

/// One that runs. It is killed when it is dropped.
pub(crate) struct Service {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
    pub(crate) address: SocketAddr,
    pub(crate) start: Duration,
    // Last: the process is gone when it is removed.
    _home: Option<Directory>,
}

impl Service {
    /// Listens on a port of its own, with these arguments.
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: &[A]) -> Self {
        let home = Directory::new();
        let mut service = Self::start_in(home.path(), arguments);
        service._home = Some(home);
        service
    }

    pub(crate) fn start_in<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Self {
        let mut command = command(directory, arguments);
        command.args(["--listen", "127.0.0.1:0"]);
        Self::run(command)
    }

    /// With this rule file.
    pub(crate) fn with_rules(home: &Directory, rules: &str, arguments: &[&str]) -> Self {
        let file = home.write("rules.toml", rules);
        Self::start_in(home.path(), &[&["--config", &file], arguments].concat())
    }

    pub(crate) fn run(mut command: Command) -> Self {
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let (stdout, stderr) = (Arc::default(), Arc::default());
        gather(child.stdout.take().unwrap(), &stdout, Some(sender));
        gather(child.stderr.take().unwrap(), &stderr, None);
        let mut service = Self {
            child,
            stdout,
            stderr,
            address: ([0; 4], 0).into(),
            start: begun.elapsed(),
            _home: None,
        };
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let Ok(line) = lines.recv_timeout(left) else { panic!("it does not listen") };
            if let Some(url) = line.strip_prefix("listening on ") {
                let address = url.trim().split("://").nth(1).unwrap();
                service.address = address.parse().unwrap();
                service.start = begun.elapsed();
                return service;
            }
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.address)
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    pub(crate) fn log(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// How it ends, within this time.
    pub(crate) fn end(&mut self, bound: Duration) -> ExitStatus {
        until("it to end", bound, || self.child.try_wait().unwrap())
    }

    /// Asks it to stop, and sees that it does.
    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        assert_eq!(self.end(PATIENCE).code(), Some(0));
    }

    /// Kills it, as a crash would.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Bytes of memory it has.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// What `/metrics` says of this series, written in full.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let answer = self.client().get("/metrics");
        let value =
            answer.body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {series} in {}", answer.body)).parse().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("what it said:\n{}{}", self.stdout(), self.log());
        }
    }
}

/// Keeps what it writes, so that it never waits for a reader.
fn gather(
    from: impl Read + Send + 'static,
    to: &Arc<Mutex<String>>,
    lines: Option<mpsc::Sender<String>>,
) {
    let to = Arc::clone(to);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            *to.lock().unwrap() += &format!("{line}\n");
            if let Some(lines) = &lines {
                let _ = lines.send(line);
            }
        }
    });
}

pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(status.unwrap().success(), "{name} to {process}");
}

/// Asks again and again until there is an answer.
pub(crate) fn until<T>(what: &str, bound: Duration, mut answer: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(begun.elapsed() < bound, "waited {bound:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
