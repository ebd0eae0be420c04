//! A line for each request. Whoever reads them does not keep anybody waiting: what a reader cannot take is left out, and counted.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Instant, SystemTime};

use dashpot_http::client_address;
use dashpot_rules::{AccessLog, LiveRules};
use http::{StatusCode, Version, request};
use serde::Serialize;

use crate::proxy::headers::Origin;
use crate::serve::common::Failure;
use crate::serve::log::Format;

/// How many lines may wait to be written.
const WAITING_MOST: usize = 8192;

/// How much is told of a path, in bytes.
const PATH_MOST: usize = 1024;

/// The same of a method.
const METHOD_MOST: usize = 32;

/// What nginx calls it, and those who read logs know: the caller left before it was answered.
const LEFT: u16 = 499;

/// Where lines go.
#[derive(Clone)]
pub(crate) struct Log {
    lines: SyncSender<Vec<u8>>,
    format: Format,
    dropped: Arc<AtomicU64>,
}

/// What is known of a request before it is answered. Written when it is, or when it never will be.
pub(crate) struct Note {
    log: Log,
    is_written: bool,
    at: SystemTime,
    began: Instant,
    ip: IpAddr,
    method: String,
    path: String,
    version: Version,
}

/// A line for machines.
#[derive(Serialize)]
struct Line<'a> {
    time: &'a str,
    ip: IpAddr,
    method: &'a str,
    path: &'a str,
    version: &'a str,
    status: u16,
    bytes: u64,
    seconds: f64,
}

impl Log {
    /// Opens it; nothing, if nobody wants one.
    pub(crate) fn open(log: &AccessLog, format: Format) -> Result<Option<Self>, Failure> {
        let out: Box<dyn Write + Send> = match log {
            AccessLog::Off => return Ok(None),
            AccessLog::Output => Box::new(io::stdout()),
            AccessLog::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let wrong = |error| Failure::usage(format!("{}: {error}", path.display()));
                Box::new(file.map_err(wrong)?)
            }
        };
        let (lines, waiting) = sync_channel(WAITING_MOST);
        let work = move || write(out, &waiting);
        let started = thread::Builder::new().name("dashpot-access".to_owned()).spawn(work);
        started.map_err(|error| Failure::usage(format!("cannot start threads: {error}")))?;
        Ok(Some(Self { lines, format, dropped: Arc::default() }))
    }

    /// How many lines were left out.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Notes a request. Nothing of its query or its headers.
    pub(crate) fn note(&self, head: &request::Parts, origin: &Origin, rules: &LiveRules) -> Note {
        let peer = origin.peer.ip().to_canonical();
        let rules = rules.borrow();
        let ip = client_address(rules.identity(), Some(peer), &head.headers);
        let path = head.uri.path();
        let path = path.get(..path.floor_char_boundary(PATH_MOST)).unwrap_or_default();
        Note {
            log: self.clone(),
            is_written: false,
            at: SystemTime::now(),
            began: Instant::now(),
            ip: ip.map_or(peer, |found| found.address),
            // Letters and the like.
            method: head.method.as_str().chars().take(METHOD_MOST).collect(),
            // CONNECT has none.
            path: if path.is_empty() { "-".to_owned() } else { path.to_owned() },
            version: head.version,
        }
    }
}

impl Note {
    /// Writes the line, now that all is known.
    pub(crate) fn write(mut self, status: StatusCode, bytes: u64) {
        self.put(status.as_u16(), bytes);
    }

    fn put(&mut self, status: u16, bytes: u64) {
        self.is_written = true;
        let at = jiff::Timestamp::try_from(self.at).unwrap_or_default();
        let time = format!("{at:.3}");
        let version = format!("{:?}", self.version);
        let seconds = self.began.elapsed().as_secs_f64();
        let mut line = match self.log.format {
            Format::Json => serde_json::to_vec(&Line {
                time: &time,
                ip: self.ip,
                method: self.method.as_str(),
                path: &self.path,
                version: &version,
                status,
                bytes,
                seconds,
            })
            .unwrap_or_default(),
            Format::Text => {
                let (method, path) = (self.method.as_str(), Escaped(&self.path));
                let ip = self.ip;
                format!("{time} {ip} {method} {path} {version} {status} {bytes} {seconds:.4}")
                    .into_bytes()
            }
        };
        line.push(b'\n');
        if self.log.lines.try_send(line).is_err() {
            self.log.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if !self.is_written {
            self.put(LEFT, 0);
        }
    }
}

/// A path in which nothing can be taken for the end of it.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            if c.is_ascii_graphic() {
                std::fmt::Write::write_char(f, c)?;
            } else {
                write!(f, "{}", c.escape_unicode())?;
            }
        }
        Ok(())
    }
}

/// Writes lines, as many at once as there are, until nobody sends any more.
fn write(out: Box<dyn Write + Send>, waiting: &Receiver<Vec<u8>>) {
    let mut out = BufWriter::new(out);
    while let Ok(line) = waiting.recv() {
        // Nobody may be there to read it.
        let _ = out.write_all(&line);
        while let Ok(line) = waiting.try_recv() {
            let _ = out.write_all(&line);
        }
        let _ = out.flush();
    }
}
