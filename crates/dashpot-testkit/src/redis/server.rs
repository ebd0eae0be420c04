use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::questions::field_of;
use super::{Connection, Reply, until};
use crate::process::{TemporaryDirectory, await_stopped, free_port, signal, start};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(10);

/// A `redis-server` of one's own, on a free port of loopback.
///
/// The binary is `redis-server`, or what `DASHPOT_REDIS_SERVER` names. It is killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    child: Mutex<Child>,
    connection: Mutex<Option<Connection>>,
    // Last: the process is gone when it is removed.
    directory: TemporaryDirectory,
}

impl RedisServer {
    /// Starts one.
    ///
    /// # Panics
    /// If there is no `redis-server`, or it does not answer within ten seconds.
    #[must_use]
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one with more settings, such as `["--maxmemory", "2mb"]`.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[must_use]
    pub fn with(settings: &[&str]) -> Self {
        Self::with_variables(settings, &[])
    }

    /// The same with variables in its environment.
    pub(super) fn with_variables(settings: &[&str], variables: &[(String, String)]) -> Self {
        Self::launch(variables, |port, _| arguments(port, settings))
    }

    /// Starts one with these variables and the arguments that are made for a port and a
    /// directory, on another port if somebody was faster to take it.
    pub(super) fn launch(
        variables: &[(String, String)],
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Self {
        let server = (0..20).find_map(|_| Self::launch_on(free_port(), variables, &arguments));
        server.expect("a port that stays free until redis-server takes it")
    }

    /// The same on one port, unless somebody was faster to take it.
    fn launch_on(
        port: u16,
        variables: &[(String, String)],
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Option<Self> {
        let directory = TemporaryDirectory::new();
        let arguments = arguments(port, directory.path());
        let variables = variables.to_vec();
        let child = Mutex::new(spawn(directory.path(), &arguments, &variables));
        let connection = Mutex::default();
        let server = Self { port, arguments, variables, child, connection, directory };
        if server.becomes_ready() {
            return Some(server);
        }
        assert!(server.port_was_taken(), "redis-server ends at once: {}", server.log());
        None
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:PORT`
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Asks it something, over the one connection it is asked over.
    ///
    /// # Panics
    /// If it cannot be reached or does not answer within two seconds.
    pub fn command<A: AsRef<[u8]>>(&self, command: &[A]) -> Reply {
        match self.try_command(command) {
            Ok(reply) => reply,
            Err(error) => panic!("{} does not answer: {error}", self.address()),
        }
    }

    /// Asks it something, which may fail.
    ///
    /// # Errors
    /// If it cannot be reached or does not answer within two seconds.
    pub fn try_command<A: AsRef<[u8]>>(&self, command: &[A]) -> io::Result<Reply> {
        self.on_connection(|connection| connection.command(command))
    }

    /// A connection of one's own, with the password given if one is needed.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub fn connect(&self) -> io::Result<Connection> {
        let mut connection = Connection::to(&self.address())?;
        let needed = self.arguments.iter().position(|argument| argument == "--requirepass");
        if let Some(password) = needed.and_then(|at| self.arguments.get(at + 1)) {
            connection.command(&["AUTH", password])?;
        }
        Ok(connection)
    }

    /// Kills it, as a crash would.
    ///
    /// # Panics
    /// If the system does not let us.
    pub fn kill(&self) {
        let mut child = lock(&self.child);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        *lock(&self.connection) = None;
    }

    /// Starts it again where it was and as it was, but empty; if it runs, it is killed before.
    ///
    /// # Panics
    /// If it does not answer within ten seconds.
    pub fn restart(&self) {
        self.kill();
        for file in fs::read_dir(self.directory.path()).expect("it is ours").flatten() {
            if file.path().extension().is_some_and(|extension| extension == "rdb") {
                fs::remove_file(file.path()).expect("it is ours");
            }
        }
        until("redis-server to start again", START, || {
            *lock(&self.child) = spawn(self.directory.path(), &self.arguments, &self.variables);
            self.becomes_ready().then_some(())
        });
    }

    /// Stops it in its tracks: connections stay open, nothing is answered.
    ///
    /// # Panics
    /// If it does not run.
    pub fn hang(&self) {
        let process = lock(&self.child).id();
        signal(process, "STOP");
        await_stopped(process, true);
    }

    /// Lets it go on after [`hang`](Self::hang).
    ///
    /// # Panics
    /// If it does not run.
    pub fn resume(&self) {
        let process = lock(&self.child).id();
        signal(process, "CONT");
        await_stopped(process, false);
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> u32 {
        lock(&self.child).id()
    }

    /// What it wrote to its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub(super) fn on_connection<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut connection = lock(&self.connection);
        let mut ours = match connection.take().filter(Connection::is_fresh) {
            Some(ours) => ours,
            None => self.connect()?,
        };
        // If it fails, it is not used again.
        let result = work(&mut ours)?;
        *connection = Some(ours);
        Ok(result)
    }

    /// Waits until it answers, and sees that it is this process and no other that does; not so if
    /// it ends.
    fn becomes_ready(&self) -> bool {
        let process = self.process().to_string();
        until("redis-server to start", START, || {
            if let Some(status) = lock(&self.child).try_wait().expect("it is ours") {
                let missing = status.code() == Some(127);
                assert!(!missing, "redis-server is not installed: scripts/test installs it");
                return Some(false);
            }
            let info = match self.try_command(&["INFO", "server"]).ok()? {
                Reply::Text(info) => String::from_utf8_lossy(&info).into_owned(),
                _ => return None,
            };
            (field_of(&info, "process_id") == Some(&process)).then_some(true)
        })
    }

    fn port_was_taken(&self) -> bool {
        self.log().contains("Address already in use")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The settings all servers have, and these.
pub(super) fn arguments(port: u16, settings: &[&str]) -> Vec<String> {
    let port = port.to_string();
    let mut all = vec!["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
    // Replicas need not wait for others to ask for the same.
    all.extend(["--repl-diskless-sync-delay", "0"]);
    all.extend(settings);
    all.into_iter().map(str::to_owned).collect()
}

fn spawn(directory: &Path, arguments: &[String], variables: &[(String, String)]) -> Child {
    let program = std::env::var("DASHPOT_REDIS_SERVER").unwrap_or("redis-server".into());
    let log = File::options().append(true).create(true).open(directory.join("log"));
    let log = log.expect("a log file");
    start(&program, |command| {
        command.args(arguments).args(["--loglevel", "warning", "--dir"]).arg(directory);
        command.envs(variables.iter().cloned());
        let errors = log.try_clone().expect("a log file");
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
    })
}

/// A lock that another thread's panic does not spoil.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_that_is_taken_is_noticed() {
        // By somebody who never answers, and by somebody who answers just as well.
        let mute = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = RedisServer::start();
        for taken in [mute.local_addr().unwrap().port(), other.port()] {
            assert!(RedisServer::launch_on(taken, &[], |port, _| arguments(port, &[])).is_none());
        }
    }

    #[test]
    #[should_panic(expected = "redis-server ends at once: \n*** FATAL CONFIG FILE ERROR")]
    fn a_mistake_in_the_settings_is_told() {
        let _ = RedisServer::with(&["--no-such-setting", "1"]);
    }
}
