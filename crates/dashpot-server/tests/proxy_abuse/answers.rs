//! Backends that answer what can be read in two ways. Their callers may get less than that, and those who
//! come next get nothing of it.

use std::thread;
use std::time::Duration;

use crate::backend::{Backend, Link};
use crate::caller::Failure;
use crate::echo;
use crate::gateway::Gateway;

/// What a caller may hear.
#[derive(Clone, Copy, Debug, PartialEq)]
enum May {
    /// That it is the backend's fault.
    Fault,
    /// An answer with this body.
    Be(&'static str),
    /// Some of an answer, and that it is not whole.
    Break,
}
use May::{Be, Break, Fault};

type Case = (&'static str, Vec<u8>, &'static [May]);

/// `/evil/N` is answered with the bytes of this case and nothing more; all else as it should be.
fn backend(cases: &[Case], closes: bool) -> Backend {
    let answers: Vec<_> = cases.iter().map(|(_, bytes, _)| bytes.clone()).collect();
    Backend::start(move |link: &mut Link| {
        while let Some(request) = link.request() {
            let sent = match request.word(1).strip_prefix("/evil/") {
                None => echo::answer(link, &request),
                Some(nth) => link.send(&answers[nth.parse::<usize>().unwrap()]) && !closes,
            };
            if !sent {
                return;
            }
        }
    })
}

fn all(method: &str, closes: bool, cases: &[Case]) {
    let backend = backend(cases, closes);
    let arguments = ["--threads", "1", "--response-timeout", "1s"];
    let mut gateway = Gateway::start(backend.address, &arguments);
    let mut wrong = Vec::new();
    for (nth, (what, _, may)) in cases.iter().enumerate() {
        let mut caller = gateway.caller();
        caller.send(format!("{method} /evil/{nth} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        let told = caller.answer_to(method);
        let right = match &told {
            Ok(answer) if answer.status() == 502 => may.contains(&Fault),
            Ok(answer) => may.iter().any(|may| matches!(may, Be(body) if *body == answer.text())),
            Err(Failure::Broken(_) | Failure::Gone) => may.contains(&Break),
            Err(_) => false,
        };
        if !right {
            wrong.push(format!("{what}: {told:?}, and not one of {may:?}"));
        }
        for path in ["/next/1", "/next/2"] {
            let next = gateway.caller().get(path);
            if !next.as_ref().is_ok_and(|next| next.text() == format!("GET {path}")) {
                wrong.push(format!("{what}: the next one got {next:?}"));
            }
        }
        // Whoever stays on the connection gets nothing of it either.
        if let (Ok(_), Ok(after)) = (&told, caller.get("/mine"))
            && after.text() != "GET /mine"
        {
            wrong.push(format!("{what}: then {after:?}"));
        }
    }
    gateway.is_well();
    backend.is_content();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}

fn ok(lines: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n{body}").into_bytes()
}

const NEXT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled";

#[test]
fn lengths_and_codings_that_contradict_each_other() {
    let chunks = "Transfer-Encoding: chunked\r\n";
    let body = "5\r\nhello\r\n0\r\n\r\n";
    let (five, six) = ("Content-Length: 5\r\n", "Content-Length: 6\r\n");
    all(
        "GET",
        false,
        &[
            ("a length and chunks", ok(&format!("{five}{chunks}"), body), &[Fault, Be("hello")]),
            ("chunks and a length", ok(&format!("{chunks}{five}"), body), &[Fault, Be("hello")]),
            ("two lengths", ok(&format!("{five}{six}"), "hello"), &[Fault]),
            ("two lengths in one", ok("Content-Length: 5, 6\r\n", "hello"), &[Fault]),
            ("the same twice", ok(&format!("{five}{five}"), "hello"), &[Fault, Be("hello")]),
            ("a sign", ok("Content-Length: +5\r\n", "hello"), &[Fault]),
            ("a negative one", ok("Content-Length: -1\r\n", "hello"), &[Fault]),
            ("not a number", ok("Content-Length: five\r\n", "hello"), &[Fault]),
            ("beyond", ok("Content-Length: 18446744073709551621\r\n", "hello"), &[Fault]),
            ("a size that is none", ok(chunks, "x\r\nhello\r\n0\r\n\r\n"), &[Fault, Break]),
            (
                "a size beyond",
                ok(chunks, "10000000000000005\r\nhello\r\n0\r\n\r\n"),
                &[Fault, Break],
            ),
            ("a chunk without an end", ok(chunks, "5\r\nhelloworld\r\n0\r\n\r\n"), &[Fault, Break]),
            ("a line feed in a size", ok(chunks, "5;\nx\r\nhello\r\n0\r\n\r\n"), &[Fault, Break]),
        ],
    );
}

#[test]
fn heads_that_are_none() {
    let five = "Content-Length: 5\r\n";
    let hello: &[May] = &[Fault, Be("hello")];
    let first = |line: &str| format!("{line}\r\n{five}\r\nhello").into_bytes();
    all(
        "GET",
        true,
        &[
            ("garbage", b"\xff\x00garbage\r\n\r\n".to_vec(), &[Fault]),
            ("nothing but an end", b"\r\n\r\n\r\n".to_vec(), &[Fault]),
            ("a body without a head", b"<html>hello</html>".to_vec(), &[Fault]),
            ("a request", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), &[Fault]),
            ("two digits", first("HTTP/1.1 20 OK"), &[Fault]),
            ("four digits", first("HTTP/1.1 2000 OK"), &[Fault]),
            ("no digits", first("HTTP/1.1 OK"), &[Fault]),
            ("a status below all", first("HTTP/1.1 099 OK"), &[Fault]),
            ("another version", first("HTTP/2.0 200 OK"), &[Fault]),
            ("another protocol", first("ICY 200 OK"), &[Fault]),
            ("a folded line", ok(&format!("X: a\r\n b\r\n{five}"), "hello"), &[Fault]),
            ("a folded length", ok("Content-Length:\r\n 5\r\n", "hello"), &[Fault]),
            ("a blank before the colon", ok("Content-Length : 5\r\n", "hello"), &[Fault]),
            ("a NUL", ok(&format!("X: a\0b\r\n{five}"), "hello"), &[Fault]),
            ("a return", ok(&format!("X: a\rSet-Cookie: b\r\n{five}"), "hello"), &[Fault]),
            ("a name that is none", ok(&format!("X y: a\r\n{five}"), "hello"), &[Fault]),
            ("line feeds", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello".to_vec(), hello),
            ("no reason", first("HTTP/1.1 200"), hello),
            ("a reason with strange bytes", first("HTTP/1.1 200 \u{e9}\t!"), hello),
            (
                "a coding that nobody knows",
                ok("Transfer-Encoding: x\r\n", "hello"),
                &[Fault, Break, Be("hello")],
            ),
            ("an old one", b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec(), &[Be("hello")]),
            ("until it closes", ok("", "hello"), &[Be("hello")]),
        ],
    );
}

/// The connection is used again, and what was too much must not be the next one's answer.
#[test]
fn more_than_was_announced_is_nobodys_answer() {
    let five = "Content-Length: 5\r\n";
    let more = |lines: &str, body: &str| ok(lines, &format!("{body}{NEXT}"));
    all(
        "GET",
        false,
        &[
            ("after a length", more(five, "hello"), &[Be("hello")]),
            (
                "after chunks",
                more("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
                &[Be("hello")],
            ),
            ("after nothing", more("Content-Length: 0\r\n", ""), &[Be("")]),
            ("a byte", ok(five, "hellox"), &[Be("hello")]),
            ("a line", ok(five, "hello\r\n"), &[Be("hello")]),
            ("the start of a head", ok(five, "helloHTTP/1.1 200"), &[Be("hello")]),
            ("an early hint", ok(five, "helloHTTP/1.1 103 Early Hints\r\n\r\n"), &[Be("hello")]),
            ("much", ok(five, &format!("hello{}", "x".repeat(500_000))), &[Be("hello")]),
            ("after 204", format!("HTTP/1.1 204 No Content\r\n\r\n{NEXT}").into_bytes(), &[Be("")]),
            (
                "after 304",
                format!("HTTP/1.1 304 Not Modified\r\n\r\n{NEXT}").into_bytes(),
                &[Be("")],
            ),
            (
                "204 with a length",
                format!("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello{NEXT}")
                    .into_bytes(),
                &[Be(""), Fault],
            ),
        ],
    );
    all(
        "HEAD",
        false,
        &[
            ("a body that nobody asked for", ok(five, "hello"), &[Be("")]),
            ("an answer for a body", ok("Content-Length: 45\r\n", NEXT), &[Be("")]),
            ("chunks", ok("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), &[Be("")]),
        ],
    );
}

/// It says something while nobody asks: it has had enough of waiting, or it is up to something.
#[test]
fn what_comes_between_two_requests_is_nobodys_answer() {
    for late in ["HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nlate", NEXT, "x"] {
        for closes in [false, true] {
            let backend = Backend::start(move |link| {
                while let Some(request) = link.request() {
                    if !echo::answer(link, &request) {
                        return;
                    }
                    if request.word(1) == "/first" {
                        thread::sleep(Duration::from_millis(50));
                        link.send(late);
                        if closes {
                            return;
                        }
                    }
                }
            });
            let gateway = Gateway::start(backend.address, &["--threads", "1"]);
            for nth in 0..5 {
                gateway.serves("/first");
                // Longer than the backend waits: what it says is there before the next one asks.
                thread::sleep(Duration::from_millis(150));
                let path = format!("/second/{nth}");
                gateway.serves(&path);
                let mut caller = gateway.caller();
                let body = crate::caller::post(&path, "hello");
                assert_eq!(caller.ask(body).unwrap().text(), format!("POST {path} hello"));
            }
            backend.is_content();
        }
    }
}
