//! Processes that die with the test, and what they need: a port and a directory.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A port nobody listens on at this moment.
///
/// It is none of those that the system gives to clients: else a client that tries to connect
/// while the server is down may be given the very port it calls, and talk to itself.
pub fn free_port() -> u16 {
    loop {
        let port = 10_000 + (random() % 22_000) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// A directory that is removed on drop.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// A new one, empty.
    #[expect(clippy::new_without_default, reason = "there is nothing default about a directory")]
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("dashpot-test-{:016x}", random()));
        fs::create_dir(&path).expect("a temporary directory");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Starts a program that the system kills when this process ends, even if nothing is dropped.
///
/// That promise is about the *thread* that starts it, so one that never ends does.
pub fn start(program: &str, prepare: impl FnOnce(&mut Command)) -> Child {
    type Job = (Command, Sender<std::io::Result<Child>>);
    static STARTER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::spawn(move || {
            for (mut command, reply) in jobs {
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });

    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    prepare(&mut command);
    let (sender, reply) = mpsc::channel();
    let starter = starter.lock().unwrap_or_else(PoisonError::into_inner);
    starter.send((command, sender)).expect("the starter never ends");
    let child = reply.recv().expect("the starter never ends");
    child.expect("setpriv, which is part of util-linux, can be started")
}

/// Where a program of the system's is, also where only root looks for it. A test whose program is missing proves nothing, so
/// it fails.
pub fn of_the_system(name: &str) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = places.map(|place| place.join(name)).find(|file| file.is_file());
    let found = found.unwrap_or_else(|| panic!("{name} is not there; scripts/test installs it"));
    found.into_os_string().into_string().expect("a path that is text")
}

/// Sends a signal by name.
pub fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    let status = Command::new("sh").args(["-c", &kill]).status().expect("there is a shell");
    assert!(status.success(), "{kill}");
}

/// Waits until a process stands still, or does not any more.
pub fn await_stopped(process: u32, stopped: bool) {
    until("a process to stop or go on", Duration::from_secs(5), || {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, fields) = status.rsplit_once(") ")?;
        (fields.starts_with('T') == stopped).then_some(())
    });
}

/// Asks again and again until there is an answer.
pub fn until<T>(what: &str, bound: Duration, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < bound, "waited {bound:?} in vain: {what}");
        thread::sleep(Duration::from_millis(3));
    }
}
