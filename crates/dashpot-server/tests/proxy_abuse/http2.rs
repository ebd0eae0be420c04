//! Requests over HTTP/2 that would be something else once they are written as HTTP/1.1.

use crate::backend::Seen;
use crate::cases::Scene;
use crate::frames::{
    Connection, DATA, END_HEADERS, END_STREAM, Ended, HEADERS, block, frame, get, request,
};

const HIDDEN: &str = "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a";

/// What comes of each; all are to be refused, or broken off before they look whole.
fn all(cases: Vec<(String, Vec<u8>)>, may: &[u16]) {
    let mut scene = Scene::start();
    let mut wrong = Vec::new();
    for (what, bytes) in &cases {
        let mut connection = Connection::to(&scene.gateway);
        connection.send(bytes);
        let end = connection.end(1);
        drop(connection);
        let seen = scene.backend.take();
        let told = match &end {
            Ended::Answered(status, _) => may.contains(status),
            Ended::Reset | Ended::Closed => true,
            Ended::Broken(_) | Ended::Late => false,
        };
        if !told || seen.iter().any(|seen| !matches!(seen, Seen::Part(_))) {
            wrong.push(format!("{what}: {end:?}, and the backend got {seen:?}"));
        }
        if let Err(poisoned) = scene.is_sound() {
            wrong.push(format!("{what}: {poisoned}"));
        }
    }
    scene.gateway.is_well();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), cases.len());
}

fn with(name: &str, value: &str) -> (String, Vec<u8>) {
    let mut fields = get("/a").to_vec();
    match fields.iter_mut().find(|field| field.0 == name) {
        Some(field) => field.1 = value,
        None => fields.push((name, value)),
    }
    (format!("{name}: {value}"), request(1, &fields, b""))
}

#[test]
fn plain_ones_are_answered() {
    let scene = Scene::start();
    let mut connection = Connection::to(&scene.gateway);
    connection.send(&request(1, &get("/a"), b""));
    assert_eq!(connection.end(1), Ended::Answered(200, b"GET /a".to_vec()));
    let mut fields = get("/b").to_vec();
    fields[0].1 = "POST";
    connection.send(&request(3, &fields, b"hello"));
    assert!(matches!(connection.end(3), Ended::Answered(_, body) if body == b"POST /b hello"));
    fields.push(("content-length", "5"));
    connection.send(&request(5, &fields, b"hello"));
    assert!(matches!(connection.end(5), Ended::Answered(_, body) if body == b"POST /b hello"));
    connection.send(&request(7, &get("/c"), b"hello"));
    let end = connection.end(7);
    assert!(matches!(&end, Ended::Answered(_, body) if body == b"GET /c hello"), "{end:?}");
    assert_eq!(scene.backend.take().len(), 4);
    scene.is_sound().unwrap();
}

#[test]
fn bytes_that_end_lines_are_refused() {
    let mut cases = Vec::new();
    for bad in [HIDDEN, "a\r\nX: y", "a\nX: y", "a\rX: y", "a\0b", "\r\n", "a\r\n"] {
        for name in ["x-value", ":path", ":method", ":authority", ":scheme", "host", "cookie", "te"]
        {
            let value = if name == ":path" { format!("/{bad}") } else { bad.to_owned() };
            cases.push(with(name, &value));
        }
        cases.push(with(&format!("x-{bad}"), "y"));
    }
    all(cases, &[400]);
}

#[test]
fn what_is_not_a_request_line_is_refused() {
    all(
        vec![
            with(":method", "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\nGET"),
            with(":method", "GET /smuggled"),
            with(":method", ""),
            with(":method", "G(T"),
            with(":path", "/a HTTP/1.1\r\nX: y"),
            with(":path", "/a /b"),
            with(":path", "/a HTTP/1.1"),
            with(":path", "/a\tb"),
            with(":path", "/a\x7fb"),
            with(":path", ""),
            with(":path", "a"),
            with(":authority", "a b"),
            with(":authority", "a/b"),
            with(":authority", "user@a"),
            with(":authority", "a,b"),
            with(":authority", "a:x"),
            with(":protocol", "websocket"),
            with(":strange", "x"),
        ],
        &[400, 405],
    );
}

#[test]
fn fields_of_http_1_are_refused() {
    all(
        vec![
            with("transfer-encoding", "chunked"),
            with("transfer-encoding", "identity"),
            with("connection", "close"),
            with("connection", "keep-alive, x-forwarded-for"),
            with("keep-alive", "5"),
            with("proxy-connection", "keep-alive"),
            with("upgrade", "h2c"),
            with("te", "gzip"),
            with("te", "chunked"),
            with("X-Large", "letters"),
            with("x y", "z"),
            with("x:y", "z"),
            with("x\0y", "z"),
            with("", "z"),
            with("transfer-encoding ", "chunked"),
        ],
        &[400],
    );
}

#[test]
fn a_host_that_is_not_the_authority_is_refused() {
    let twice = [&get("/a")[..], &[("host", "a.example"), ("host", "a.example")]].concat();
    let authorities = [&get("/a")[..], &[(":authority", "b.example")]].concat();
    let paths = [&get("/a")[..], &[(":path", "/b")]].concat();
    let late = [&get("/a")[..3], &[("x", "y"), (":path", "/a")]].concat();
    let nobody = [&get("/a")[..2], &get("/a")[3..]].concat();
    all(
        vec![
            with("host", "b.example"),
            with("host", "a.example:80"),
            with("host", ""),
            ("two hosts".to_owned(), request(1, &twice, b"")),
            ("two authorities".to_owned(), request(1, &authorities, b"")),
            ("two paths".to_owned(), request(1, &paths, b"")),
            ("a path after other fields".to_owned(), request(1, &late, b"")),
            ("no host at all".to_owned(), request(1, &nobody, b"")),
            ("no method".to_owned(), request(1, &get("/a")[1..], b"")),
            ("no path".to_owned(), request(1, &get("/a")[..3], b"")),
        ],
        &[400],
    );
}

#[test]
fn a_length_that_does_not_fit_never_looks_whole() {
    let mut fields = get("/a").to_vec();
    fields[0].1 = "POST";
    let mut lengths = Vec::new();
    for (length, body) in
        [("10", "hello"), ("3", "hello"), ("5", ""), ("6", "hello"), ("4", "hello")]
    {
        let fields = [&fields[..], &[("content-length", length)]].concat();
        lengths.push((format!("{length} for {body:?}"), request(1, &fields, body.as_bytes())));
    }
    for length in ["x", "-5", "+5", "5, 5, 6", "", "0x5", "18446744073709551621"] {
        let fields = [&fields[..], &[("content-length", length)]].concat();
        lengths.push((format!("{length:?}"), request(1, &fields, b"hello")));
    }
    let two = [&fields[..], &[("content-length", "5"), ("content-length", "6")]].concat();
    lengths.push(("two lengths".to_owned(), request(1, &two, b"hello")));
    all(lengths, &[400, 413]);
}

#[test]
fn a_body_that_does_not_end_never_looks_whole() {
    let mut fields = get("/a").to_vec();
    fields[0].1 = "POST";
    let head = frame(HEADERS, END_HEADERS, 1, &block(&fields));
    let data = frame(DATA, 0, 1, b"hello");
    let ending =
        |fields: &[(&str, &str)]| frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(fields));
    let cases = [
        ("it waits", vec![]),
        ("a trailer with an end of line", ending(&[("x-sum", "1\r\n\r\nGET /smuggled HTTP/1.1")])),
        ("trailers that do not end", frame(HEADERS, END_HEADERS, 1, &block(&[("x-sum", "1")]))),
    ];
    let bytes = |end: Vec<u8>| [&head[..], &data, &end].concat();
    all(cases.map(|(what, end)| (what.to_owned(), bytes(end))).into(), &[400, 408]);
}

/// The trailer goes, or all of it does.
#[test]
fn a_trailer_changes_nothing_about_the_request() {
    let mut fields = get("/a").to_vec();
    fields[0].1 = "POST";
    for trailer in [
        (":path", "/smuggled"),
        (":method", "GET"),
        ("content-length", "3"),
        ("host", "evil.example"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ] {
        let scene = Scene::start();
        let mut connection = Connection::to(&scene.gateway);
        connection.send(&frame(HEADERS, END_HEADERS, 1, &block(&fields)));
        connection.send(&frame(DATA, 0, 1, b"hello"));
        connection.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[trailer])));
        let end = connection.end(1);
        let seen = scene.backend.take();
        let refused = matches!(end, Ended::Answered(400, _) | Ended::Reset | Ended::Closed);
        let parts = seen.iter().all(|seen| matches!(seen, Seen::Part(_)));
        let passed = seen == [Seen::Whole("POST /a hello".to_owned())];
        assert!(refused && parts || passed, "{trailer:?}: {end:?}, and the backend got {seen:?}");
        scene.is_sound().unwrap();
    }
}
