//! HTTP/2 by prior knowledge: many streams in, HTTP/1.1 out.

use std::thread;
use std::time::Duration;

use crate::multiplexed::{Multiplexed, request};
use crate::scene::{OK, Scene};

#[test]
fn a_request_arrives_as_if_it_came_the_old_way() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = request("DELETE", "/a%2Fb//c?d=e&f");
    asked.headers_mut().insert("x-a", "b".parse().unwrap());
    asked.headers_mut().append("x-a", "c".parse().unwrap());
    let asked = caller.ask(asked);
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(seen.first, "DELETE /a%2Fb//c?d=e&f HTTP/1.1");
    assert_eq!(seen.all("x-a"), ["b", "c"]);
    assert_eq!(seen.one("host"), "example.com");
    assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
    assert_eq!(seen.one("x-forwarded-proto"), "http");
    assert!(!seen.has("transfer-encoding") && !seen.has("content-length"), "{seen:?}");
    assert!(seen.fields.iter().all(|(name, _)| !name.starts_with(':')), "{seen:?}");
    backend.send(
        "HTTP/1.1 201 Made\r\nconnection: close, x-inner\r\nx-inner: 1\r\nkeep-alive: timeout=5\r\n\
         proxy-connection: close\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 4\r\n\r\nfine",
    );
    let answer = asked.answer();
    assert_eq!((answer.status(), answer.text().as_str()), (201, "fine"));
    assert_eq!(answer.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(answer.all("content-length"), ["4"]);
    for name in
        ["connection", "x-inner", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]
    {
        assert!(answer.all(name).is_empty(), "{name}: {answer:?}");
    }
}

/// Callers may send them in crumbs; HTTP/1.1 has one line for them.
#[test]
fn cookies_are_joined() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = request("GET", "/");
    for crumb in ["a=b", "c=d; e=f", "g=h"] {
        asked.headers_mut().append("cookie", crumb.parse().unwrap());
    }
    let asked = caller.ask(asked);
    let mut backend = scene.accept();
    assert_eq!(backend.request().one("cookie"), "a=b; c=d; e=f; g=h");
    backend.send(OK);
    assert_eq!(asked.answer().status(), 200);
}

/// All are with the backend before any is answered, and then the last is answered first.
#[test]
fn many_streams_go_at_once() {
    const MANY: usize = 100;
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked: Vec<_> =
        (0..MANY).map(|nth| caller.ask(request("GET", &format!("/{nth}")))).collect();
    let mut backends: Vec<_> = (0..MANY)
        .map(|_| {
            let mut backend = scene.accept();
            let seen = backend.request();
            let nth = seen.first["GET /".len()..].trim_end_matches(" HTTP/1.1").to_owned();
            (backend, nth.parse::<usize>().unwrap())
        })
        .collect();
    backends.sort_by_key(|(_, nth)| *nth);
    while let (Some(asked), Some((mut backend, nth))) = (asked.pop(), backends.pop()) {
        let body = format!("answer {nth}");
        let length = body.len();
        backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"));
        let answer = asked.answer();
        assert_eq!((answer.status(), answer.text()), (200, body));
    }
    assert!(backends.is_empty());
}

#[test]
fn five_megabytes_go_both_ways() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let body: Vec<u8> = (0..5_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    for known in [true, false] {
        let mut asked = request("POST", "/");
        if known {
            asked.headers_mut().insert("content-length", body.len().into());
        }
        let mut asked = caller.begin(asked, false);
        asked.data(body.clone(), true);
        let mut backend = scene.accept();
        let seen = backend.request();
        assert_eq!((seen.length().is_some(), seen.is_chunked()), (known, !known), "{}", seen.first);
        assert!(seen.body == body, "{} bytes, and not the same", seen.body.len());
        let length = body.len();
        backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"));
        let body = body.clone();
        let sent = body.clone();
        let writing = thread::spawn(move || {
            backend.send(sent);
            drop(backend);
        });
        let answer = asked.answer();
        assert!(answer.body == body, "{} bytes, and not the same", answer.body.len());
        writing.join().unwrap();
    }
}

#[test]
fn pieces_go_through_as_they_come() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = caller.begin(request("POST", "/"), false);
    let mut backend = scene.accept();
    assert!(backend.head().is_chunked());
    backend.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut answer = asked.head().into_body();
    for nth in 0..20 {
        let piece = format!("piece {nth}");
        asked.data(piece.clone(), nth == 19);
        backend.expect_chunks(&piece);
        backend.send_chunk(&piece);
        assert_eq!(asked.piece(&mut answer).unwrap().unwrap(), piece);
    }
    assert!(backend.chunk().unwrap().is_none());
    backend.send("0\r\n\r\n");
    assert!(asked.piece(&mut answer).unwrap().is_none());
}

#[test]
fn answers_without_a_body_have_none() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    for (method, answer, status) in [
        ("GET", "204 None\r\n", 204),
        ("GET", "304 Same\r\netag: \"1\"\r\n", 304),
        ("HEAD", "200 OK\r\ncontent-length: 1000\r\n", 200),
        ("GET", "200 OK\r\ncontent-length: 0\r\n", 200),
        ("GET", "200 OK\r\ntransfer-encoding: chunked\r\n", 200),
    ] {
        let asked = caller.ask(request(method, "/"));
        let mut backend = scene.accept();
        backend.request();
        let end = if answer.contains("chunked") { "0\r\n\r\n" } else { "" };
        backend.send(format!("HTTP/1.1 {answer}connection: close\r\n\r\n{end}"));
        let told = asked.answer();
        assert_eq!((told.status(), told.text().as_str()), (status, ""), "{answer}");
        if method == "HEAD" {
            assert_eq!(told.all("content-length"), ["1000"]);
        }
    }
}

/// The stream breaks off, and the others do not.
#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    for line in ["content-length: 10", "transfer-encoding: chunked"] {
        let mut asked = caller.ask(request("GET", "/"));
        let mut backend = scene.accept();
        backend.request();
        let body = if line.contains("chunked") { "3\r\nabc\r\n" } else { "abc" };
        backend.send(format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n{body}"));
        let mut answer = asked.head().into_body();
        assert_eq!(asked.piece(&mut answer).unwrap().unwrap(), "abc", "{line}");
        drop(backend);
        assert!(asked.piece(&mut answer).is_err(), "{line}: it looks whole");
    }
    let other = caller.ask(request("GET", "/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(OK);
    assert_eq!(other.answer().status(), 200);
}

/// Who gives up on one of them does not hang up.
#[test]
fn a_stream_that_is_given_up_ends_its_request_and_no_other() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let other = caller.ask(request("GET", "/other"));
    let mut others = scene.accept();
    others.request();
    let mut given_up = caller.begin(request("POST", "/given-up"), false);
    given_up.data("abc", false);
    let mut backend = scene.accept();
    let mut seen = backend.head();
    backend.expect_chunks("abc");
    given_up.sending.send_reset(h2::Reason::CANCEL);
    assert!(backend.body(&mut seen).is_err(), "it looks whole: {seen:?}");
    others.send(OK);
    assert_eq!(other.answer().status(), 200);
    assert!(!scene.connects_within(Duration::from_millis(50)), "it was sent again");
}

#[test]
fn the_gateway_answers_for_itself_as_well() {
    let scene = Scene::start(&["--max-body", "10"]);
    let caller = Multiplexed::to(scene.address);
    let mut long = request("POST", "/");
    long.headers_mut().insert("content-length", 11.into());
    let mut asked = caller.begin(long, false);
    asked.data("abc", false);
    asked.answer().is_problem(413);
    scene.goes_on();

    let scene = Scene::start(&["--limit", "1/h"]);
    let caller = Multiplexed::to(scene.address);
    let asked = caller.ask(request("GET", "/"));
    let mut backend = scene.accept();
    backend.request();
    drop(backend);
    asked.answer().is_problem(502);
    let denied = caller.ask(request("GET", "/")).answer();
    denied.is_problem(429);
    assert_eq!(denied.all("retry-after").len(), 1, "{denied:?}");
}

#[test]
fn a_host_that_is_not_the_authority_is_refused() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut two = request("GET", "/");
    two.headers_mut().insert("host", "other.example".parse().unwrap());
    caller.ask(two).answer().is_problem(400);
    scene.goes_on();
}

#[test]
fn nobody_is_connected_to_anybody() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let connect =
        http::Request::builder().method("CONNECT").uri("example.com:443").body(()).unwrap();
    caller.begin(connect, false).answer().is_problem(405);
    scene.goes_on();
}
