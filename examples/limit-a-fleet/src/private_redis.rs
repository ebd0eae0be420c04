//! A redis-server on a free port of loopback, for as long as the example runs.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use story::Failure;

pub(crate) struct PrivateRedis {
    port: u16,
    server: Child,
}

impl PrivateRedis {
    pub(crate) fn start() -> Result<Self, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(Self { port, server: run(port)? })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    pub(crate) fn restart(&mut self) -> Result<(), Failure> {
        self.server = run(self.port)?;
        Ok(())
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(port: u16) -> Result<Child, Failure> {
    let server = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "redis-server is not installed".into(),
            _ => Failure::from(error),
        })?;
    for _ in 0..100 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(server);
        }
        sleep(Duration::from_millis(50));
    }
    Err("redis-server does not start".into())
}
