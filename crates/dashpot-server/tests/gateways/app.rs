//! The application behind the gateway: it remembers what reached it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that reached it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Method and target, as they were written.
    pub(crate) first: String,
    pub(crate) body: String,
}

pub(crate) struct App {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl App {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let app = Self { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let seen = Arc::clone(&app.seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        app
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What reached it since it was asked last.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// One request for each connection.
fn serve(stream: TcpStream, seen: &Mutex<Vec<Seen>>) -> Option<()> {
    let mut reader = BufReader::new(&stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let first = first.trim_end().strip_suffix(" HTTP/1.1")?.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;

    let status = match first.split(' ').nth(1)? {
        "/forbidden" => "403 Forbidden",
        "/broken" => "500 Internal Server Error",
        "/busy" => "429 Too Many Requests\r\nRetry-After: 77",
        _ => "200 OK",
    };
    let body = String::from_utf8_lossy(&body).into_owned();
    seen.lock().unwrap().push(Seen { first, body });
    let text = "the application's own";
    let length = text.len();
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}");
    (&stream).write_all(answer.as_bytes()).ok()
}
