//! The service with its port for Redis clients, and how it is asked there.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{Command, Output};
use std::thread;

use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::{Connection, Reply};

use crate::client::PATIENCE;
use crate::service::{Directory, Service, until};

/// What `CL.THROTTLE` answers: limited, limit, remaining, retry after, reset after.
pub(crate) type Told = [i64; 5];

/// What it says if the store is away and `on_error` is `deny`.
pub(crate) const UNAVAILABLE: &str = "UNAVAILABLE the store does not answer";

/// A day: nothing comes back while a test runs.
pub(crate) const DAY: i64 = 86_400;

pub(crate) struct Scene {
    pub(crate) service: Service,
    pub(crate) resp: SocketAddr,
    // Last: the process is gone when it is removed.
    pub(crate) home: Directory,
}

impl Scene {
    /// In memory.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(Directory::new(), arguments)
    }

    pub(crate) fn with_rules(rules: &str, arguments: &[&str]) -> Self {
        let home = Directory::new();
        let file = home.write("rules.toml", rules);
        Self::start_in(home, &[&["--config", &file], arguments].concat())
    }

    pub(crate) fn start_in(home: Directory, arguments: &[&str]) -> Self {
        let arguments = [&["--resp-listen", "127.0.0.1:0"], arguments].concat();
        let service = Service::start_in(home.path(), &arguments);
        let resp = until("the address of RESP", PATIENCE, || {
            let greeting = service.stdout();
            let line = greeting.lines().find_map(|line| line.trim().strip_prefix("RESP on "));
            line.map(|address| address.trim().parse().unwrap())
        });
        Self { service, resp, home }
    }

    /// On this Redis. If it does not answer in good time that is told, and not counted elsewhere.
    pub(crate) fn on(redis: &RedisServer) -> Self {
        let scene = Self::with_store(&redis.url(), "deny");
        scene.until_the_store_answers();
        scene
    }

    pub(crate) fn with_store(url: &str, on_error: &str) -> Self {
        let rules = format!("[store]\nurl = '{url}'\ndeadline = '2s'\non_error = '{on_error}'\n");
        Self::with_rules(&rules, &[])
    }

    pub(crate) fn until_the_store_answers(&self) {
        let mut connection = self.connect();
        until("the store", PATIENCE, || {
            let reply = connection.command(&["CL.THROTTLE", "?", "0", "1", "1", "0"]).unwrap();
            matches!(reply, Reply::Array(_)).then_some(())
        });
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(&self.resp.to_string()).unwrap()
    }

    pub(crate) fn port(&self) -> String {
        self.resp.port().to_string()
    }
}

/// The same in memory and on Redis, at once: much of it is waiting.
pub(crate) fn both(case: impl Fn(&Scene) + Sync) {
    thread::scope(|scope| {
        let in_memory = thread::Builder::new().name("in memory".to_owned());
        in_memory.spawn_scoped(scope, || case(&Scene::start(&[]))).unwrap();
        let redis = RedisServer::start();
        case(&Scene::on(&redis));
    });
}

pub(crate) fn words(key: impl AsRef<[u8]>, numbers: &[i64]) -> Vec<Vec<u8>> {
    let mut words = vec![b"CL.THROTTLE".to_vec(), key.as_ref().to_vec()];
    words.extend(numbers.iter().map(|number| number.to_string().into_bytes()));
    words
}

/// Five numbers, which it must be.
#[track_caller]
pub(crate) fn told(reply: &Reply) -> Told {
    let Reply::Array(numbers) = reply else { panic!("not five numbers: {reply:?}") };
    let number = |reply: &Reply| match reply {
        Reply::Int(number) => *number,
        other => panic!("not a number: {other:?}"),
    };
    let numbers: Vec<i64> = numbers.iter().map(number).collect();
    numbers.try_into().unwrap_or_else(|numbers| panic!("not five: {numbers:?}"))
}

/// `CL.THROTTLE` with this key and these numbers.
#[track_caller]
pub(crate) fn ask(connection: &mut Connection, key: impl AsRef<[u8]>, numbers: &[i64]) -> Told {
    told(&connection.command(&words(key, numbers)).unwrap())
}

/// Several at once, each with its key.
#[track_caller]
pub(crate) fn ask_all(connection: &mut Connection, asked: &[(&str, &[i64])]) -> Vec<Told> {
    let commands: Vec<_> = asked.iter().map(|(key, numbers)| words(key, numbers)).collect();
    connection.commands(&commands).unwrap().iter().map(told).collect()
}

/// The error that a command must get. Whoever gets one goes on with the connection.
#[track_caller]
pub(crate) fn refused<A: AsRef<[u8]>>(connection: &mut Connection, words: &[A]) -> String {
    let replies = [connection.command(words), connection.command(&["PING"])].map(Result::unwrap);
    let [Reply::Error(told), Reply::Text(pong)] = &replies else {
        panic!("not refused: {replies:?}")
    };
    assert_eq!(pong, b"PONG");
    told.clone()
}

/// A program, which ends within a minute.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    run_with(program, arguments, |_| {})
}

pub(crate) fn run_with(
    program: &str,
    arguments: &[impl AsRef<OsStr>],
    prepare: impl FnOnce(&mut Command),
) -> Output {
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(arguments);
    prepare(&mut command);
    command.output().unwrap()
}

/// What a program wrote that has nothing to complain about.
#[track_caller]
pub(crate) fn contented(output: &Output) -> String {
    let [told, complaint] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{}: {told}\n{complaint}", output.status);
    assert_eq!(complaint, "", "{told}");
    told
}
