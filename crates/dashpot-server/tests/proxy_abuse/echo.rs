//! A backend that says back what it was asked, so that no answer can be taken for another's.

use std::thread;
use std::time::Duration;

use crate::backend::{Backend, Link};
use crate::wire::Message;

pub(crate) fn backend() -> Backend {
    Backend::start(echo)
}

/// Answers one request after the other.
pub(crate) fn echo(link: &mut Link) {
    while let Some(request) = link.request() {
        if !answer(link, &request) {
            return;
        }
    }
}

/// `/bytes/N` is answered with so many bytes, `/sleep/N` after so many milliseconds, `/fields` with the
/// fields of the request, a line for each, with names in small letters. Whether the other side took it.
pub(crate) fn answer(link: &mut Link, request: &Message) -> bool {
    let path = request.word(1).split('?').next().unwrap_or_default();
    let number = |prefix| path.strip_prefix(prefix).and_then(|rest| rest.parse::<u64>().ok());
    if let Some(millis) = number("/sleep/") {
        thread::sleep(Duration::from_millis(millis));
    }
    match number("/bytes/") {
        Some(count) => bytes(link, count as usize),
        None => {
            let body = if path == "/fields" { fields(request) } else { request.short() };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let body = if request.word(0) == "HEAD" { String::new() } else { body };
            link.send(head + &body)
        }
    }
}

fn fields(request: &Message) -> String {
    let line = |(name, value): &(String, Vec<u8>)| {
        format!("{}: {}\n", name.to_lowercase(), String::from_utf8_lossy(value))
    };
    request.fields.iter().map(line).collect()
}

fn bytes(link: &mut Link, mut count: usize) -> bool {
    let some = vec![b'x'; 64 * 1024];
    if !link.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n")) {
        return false;
    }
    while count > 0 {
        let now = count.min(some.len());
        if !link.send(&some[..now]) {
            return false;
        }
        count -= now;
    }
    true
}
