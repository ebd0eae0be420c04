//! What the examples of services share: serve an app on loopback, ask it, and tell what it answers.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use dashpot::{ManualClock, MemoryStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Whatever goes wrong in an example.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A store whose clock stands still, so that a story is the same on any machine. Yours is
/// `MemoryStore::new()`, and so is this one if the app is served for you to play with.
#[must_use]
pub fn store() -> MemoryStore {
    if is_served() { MemoryStore::new() } else { MemoryStore::with_clock(ManualClock::default()) }
}

fn is_served() -> bool {
    std::env::args().nth(1).as_deref() == Some("serve")
}

/// An app that is served, and asked.
#[derive(Debug)]
pub struct Story {
    address: SocketAddr,
}

impl Story {
    /// Serves the app on a free port of loopback. With `serve` on the command line it is served on
    /// port 3000 until it is interrupted, for you to play with.
    ///
    /// # Errors
    /// If there is no port.
    pub async fn begin(app: Router) -> Result<Self, Failure> {
        // The peer's address is what `ip` is made of.
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        if is_served() {
            let listener = TcpListener::bind("127.0.0.1:3000").await?;
            println!("http://127.0.0.1:3000, Ctrl-C to stop");
            axum::serve(listener, app).await?;
            std::process::exit(0);
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { address })
    }

    /// Where it is served.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks, and tells what came of it. `request` is a method and a path, as in `GET /`.
    ///
    /// # Errors
    /// If there is no answer within five seconds.
    pub async fn ask(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, Failure> {
        let mut text = format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        let answer = timeout(Duration::from_secs(5), self.exchange(&text)).await??;
        println!("{request:<24} {}  {}", answer.status, answer.told());
        Ok(answer)
    }

    /// [`ask`](Self::ask), so many times; gives the statuses, and tells of the first and the last.
    ///
    /// # Errors
    /// If one is not answered.
    pub async fn ask_often(
        &self,
        times: usize,
        request: &str,
        headers: &[(&str, &str)],
    ) -> Result<Vec<u16>, Failure> {
        let mut statuses = vec![self.ask(request, headers, "").await?.status];
        if times > 2 {
            println!("{:<24} {} more of those", "…", times - 2);
        }
        let text: String = headers.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
        let text = format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{text}\r\n");
        for _ in 2..times {
            statuses.push(self.exchange(&text).await?.status);
        }
        statuses.push(self.ask(request, headers, "").await?.status);
        Ok(statuses)
    }

    async fn exchange(&self, request: &str) -> Result<Answer, Failure> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("half an answer")?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or("no status")?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        Ok(Answer {
            status: status.parse()?,
            headers: headers.map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect(),
            body: body.to_owned(),
        })
    }
}

/// What came of a request.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What the headers say about limits.
    fn told(&self) -> String {
        let names = ["ratelimit", "retry-after", "location"];
        let told = names.iter().filter_map(|name| Some(format!("{name}: {}", self.header(name)?)));
        told.collect::<Vec<_>>().join("  ")
    }
}
