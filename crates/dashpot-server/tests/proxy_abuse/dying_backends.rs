//! Backends that die, before, within and after their answers. Their callers hear of it, and those who
//! come next notice nothing.

use std::time::{Duration, Instant};

use crate::backend::{Backend, Link};
use crate::caller::{Caller, Failure, get, post};
use crate::echo;
use crate::gateway::Gateway;
use crate::wire::Message;

/// What `/die/N` says before it dies, and what its caller may hear: a status; a body that is whole; or
/// nothing that is.
const DEATHS: [(&str, Heard); 17] = [
    ("", Heard::Fault),
    ("H", Heard::Fault),
    ("HTTP/1.1 200 OK", Heard::Fault),
    ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n", Heard::Fault),
    ("HTTP/1.1 100 Continue\r\n\r\n", Heard::Fault),
    ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Heard::Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", Heard::Broken),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n",
        Heard::Broken,
    ),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Heard::Whole),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Heard::Whole),
    ("HTTP/1.1 200 OK\r\n\r\nhello", Heard::UntilClosed),
];

#[derive(Clone, Copy, Debug)]
enum Heard {
    /// That it is the backend's fault.
    Fault,
    /// An answer that is not whole.
    Broken,
    Whole,
    /// Whole if it was closed, not if it was reset.
    UntilClosed,
}

/// `/die/N` kills the connection by closing it, `/reset/N` by resetting it; all else is answered.
fn mortal(link: &mut Link) {
    while let Some(request) = link.request() {
        let path = request.word(1).to_owned();
        if let Some(nth) = path.strip_prefix("/die/").or(path.strip_prefix("/reset/")) {
            let last = DEATHS[nth.parse::<usize>().unwrap()].0;
            link.send(last);
            if path.starts_with("/reset/") {
                // So that it is read before it is forgotten.
                std::thread::sleep(Duration::from_millis(30));
                link.reset_at_the_end();
            }
            return;
        }
        if !echo::answer(link, &request) {
            return;
        }
    }
}

fn is_right(heard: Heard, reset: bool, told: &Result<Message, Failure>) -> bool {
    match (heard, told) {
        (Heard::Fault, Ok(answer)) => answer.status() == 502,
        // It may have been seen before anything was passed on.
        (Heard::Broken, Ok(answer)) => answer.status() == 502,
        (Heard::Broken, Err(failure)) => matches!(failure, Failure::Broken(_) | Failure::Gone),
        (Heard::UntilClosed, Err(Failure::Broken(_) | Failure::Gone)) => reset,
        (Heard::UntilClosed, Ok(answer)) if reset => answer.status() == 502,
        (Heard::Whole | Heard::UntilClosed, Ok(answer)) => answer.text() == "hello",
        _ => false,
    }
}

/// Every way to die, over connections that are new or have been used before.
fn dies(how: &str, method: &str, kept: bool) {
    let backend = Backend::start(mortal);
    let mut gateway =
        Gateway::start(backend.address, &["--threads", "1", "--response-timeout", "5s"]);
    gateway.serves("/warm");
    let sockets = gateway.sockets();
    let mut wrong = Vec::new();
    for (nth, (said, heard)) in DEATHS.iter().enumerate() {
        // What hangs takes its time, and twice is enough.
        if wrong.len() > 1 {
            break;
        }
        if !kept {
            backend.cut();
        }
        let path = format!("/{how}/{nth}");
        let mut caller = gateway.caller();
        caller.send(if method == "POST" { post(&path, "body") } else { get(&path) });
        let told = caller.answer();
        if !is_right(*heard, how == "reset", &told) {
            wrong.push(format!("{said:?}: {told:?}, and not {heard:?}"));
        }
        // No matter to the backend how often a GET is sent over a connection that was kept.
        let asked = backend
            .times(&format!("{method} {path}{}", if method == "POST" { " body" } else { "" }));
        if asked != 1 && !(method == "GET" && kept && asked == 2) {
            wrong.push(format!("{said:?}: it was asked {asked} times"));
        }
        // Whoever was told that all went well may go on.
        if told.as_ref().is_ok_and(|answer| answer.says("connection", "close")) {
            caller = gateway.caller();
        }
        if told.is_ok() && caller.get("/mine").map(|next| next.text()) != Ok("GET /mine".to_owned())
        {
            wrong.push(format!("{said:?}: its caller cannot go on"));
        }
        let next = gateway.caller().get("/next").map(|next| next.text());
        if next != Ok("GET /next".to_owned()) {
            wrong.push(format!("{said:?}: the next one got {next:?}"));
        }
    }
    assert!(wrong.is_empty(), "{how}, {method}: {wrong:#?}");
    gateway.has_sockets(sockets + 2, Duration::from_secs(10));
    backend.is_content();
    gateway.is_well();
}

#[test]
fn it_closes_new_connections() {
    dies("die", "GET", false);
    dies("die", "POST", false);
}

#[test]
fn it_closes_connections_that_were_kept() {
    dies("die", "GET", true);
    dies("die", "POST", true);
}

#[test]
fn it_resets_new_connections() {
    dies("reset", "GET", false);
    dies("reset", "POST", false);
}

#[test]
fn it_resets_connections_that_were_kept() {
    dies("reset", "GET", true);
    dies("reset", "POST", true);
}

#[test]
fn it_closes_before_it_is_asked() {
    for reset in [false, true] {
        let backend = Backend::start(move |link| {
            if reset {
                link.reset_at_the_end();
            }
        });
        let mut gateway = Gateway::start(backend.address, &[]);
        let sockets = gateway.sockets();
        for _ in 0..20 {
            for bytes in [get("/a"), post("/a", "hello")] {
                let begun = Instant::now();
                let told = gateway.caller().ask(bytes);
                assert_eq!(told.map(|answer| answer.status()), Ok(502));
                assert!(begun.elapsed() < Duration::from_secs(5));
            }
        }
        gateway.has_sockets(sockets, Duration::from_secs(10));
        gateway.is_well();
    }
}

/// What it has sent counts, though it did not wait for the body: that is what 413 is for.
#[test]
fn it_answers_before_the_body_is_there_and_leaves() {
    let backend = Backend::start(|link| {
        while !link.buffer.windows(4).any(|four| four == b"\r\n\r\n") {
            if !link.more() {
                return;
            }
        }
        link.send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge",
        );
        // As servers do that want their answer to be read.
        while link.more() {}
    });
    let gateway = Gateway::start(backend.address, &[]);
    let mut caller = gateway.caller();
    let body = "x".repeat(4 << 20);
    let head =
        format!("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: {}\r\n\r\n", body.len());
    caller.send(head);
    let mut writer =
        Caller { stream: caller.stream.try_clone().unwrap(), buffer: vec![], end: None };
    std::thread::scope(|scope| {
        scope.spawn(move || writer.send(body));
        let answer = caller.answer().unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (413, "large"));
    });
}
