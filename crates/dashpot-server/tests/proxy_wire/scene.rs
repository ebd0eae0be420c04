//! A caller, the gateway and a backend. The test is the caller and the backend.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use socket2::SockRef;

use crate::client::PATIENCE;
use crate::message::Message;
use crate::service::{Directory, Service, until};
use crate::wire::{Wire, has_no_patience};

/// A backend that is content, and uses a connection once: the next request comes over another.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// The same over a connection that stays.
pub(crate) const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

/// `dashpot proxy` with nothing in its environment but ports of its own, in a directory.
pub(crate) fn command<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.arg("proxy").args(arguments).env_clear().current_dir(directory).stdin(Stdio::null());
    command.env("DASHPOT_PROXY_LISTEN", "127.0.0.1:0").env("DASHPOT_ADMIN_LISTEN", "127.0.0.1:0");
    command
}

/// Whoever connects is waited for, and not for ever.
pub(crate) fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    SockRef::from(&listener).set_read_timeout(Some(PATIENCE)).unwrap();
    listener
}

pub(crate) struct Scene {
    service: Service,
    pub(crate) address: SocketAddr,
    backend: TcpListener,
    // Last: the process is gone when it is removed.
    pub(crate) home: Directory,
}

impl Scene {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(Directory::new(), flags)
    }

    pub(crate) fn with_rules(rules: &str, flags: &[&str]) -> Self {
        let home = Directory::new();
        home.write("dashpot.toml", rules);
        Self::start_in(home, flags)
    }

    pub(crate) fn start_in(home: Directory, flags: &[&str]) -> Self {
        let backend = listener();
        let upstream = format!("http://{}", backend.local_addr().unwrap());
        let mut command = command(home.path(), flags);
        command.args(["--upstream", &upstream]);
        Self::run(home, backend, command)
    }

    pub(crate) fn run(home: Directory, backend: TcpListener, command: Command) -> Self {
        let service = Service::run(command);
        let address = until("the address of the proxy", PATIENCE, || {
            let greeting = service.stdout();
            let line = greeting.lines().find_map(|line| line.strip_prefix("proxy on http"))?;
            let (address, _) = line.split_once(" for ")?;
            Some(address.trim_start_matches('s').strip_prefix("://")?.parse().unwrap())
        });
        Self { service, address, backend, home }
    }

    /// A caller.
    pub(crate) fn connect(&self) -> Wire {
        Wire::to(self.address)
    }

    /// The backend, when the gateway connects to it.
    #[track_caller]
    pub(crate) fn accept(&self) -> Wire {
        match self.backend.accept() {
            Ok((stream, _)) => Wire::of(stream),
            Err(error) if has_no_patience(&error) => panic!("nobody connects to the backend"),
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether the gateway connects to the backend in this time.
    pub(crate) fn connects_within(&self, wait: Duration) -> bool {
        SockRef::from(&self.backend).set_read_timeout(Some(wait)).unwrap();
        let came = self.backend.accept().is_ok();
        SockRef::from(&self.backend).set_read_timeout(Some(PATIENCE)).unwrap();
        came
    }

    /// The service's API.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.service.address
    }

    /// What the backend sees of a request. It is content with it.
    #[track_caller]
    pub(crate) fn seen(&self, request: impl AsRef<[u8]>) -> Message {
        let mut caller = self.connect();
        caller.send(request);
        let mut backend = self.accept();
        let seen = backend.request();
        backend.send(OK);
        let answer = caller.head();
        assert_eq!(answer.status(), 200, "{answer:?}");
        seen
    }

    /// What the caller of a GET sees of an answer, after which the backend closes.
    #[track_caller]
    pub(crate) fn told(&self, answer: impl AsRef<[u8]>) -> Message {
        let mut caller = self.connect();
        caller.send(get("/"));
        let mut backend = self.accept();
        backend.request();
        backend.send(answer);
        drop(backend);
        caller.answer()
    }

    /// Another request is answered by the backend; nothing that was refused has reached it.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        let seen = self.seen(get("/goes-on"));
        assert_eq!(seen.first, "GET /goes-on HTTP/1.1", "what reached the backend first");
    }
}

impl Deref for Scene {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.service
    }
}

pub(crate) fn get(target: &str) -> String {
    with("GET", target, "", "")
}

pub(crate) fn post(target: &str, body: &str) -> String {
    with("POST", target, &format!("content-length: {}\r\n", body.len()), body)
}

/// With these lines, each of which ends with `\r\n`.
pub(crate) fn with(method: &str, target: &str, lines: &str, body: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nhost: example.com\r\n{lines}\r\n{body}")
}
