//! What is between two neighbours stays there, in both directions.

use crate::scene::{Scene, get, with};

#[test]
fn what_is_for_the_gateway_does_not_reach_the_backend() {
    let scene = Scene::start(&[]);
    let lines = "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\
        Proxy-Authorization: Basic eDp5\r\nProxy-Authenticate: Basic\r\nTE: gzip\r\n\
        Upgrade: h2c\r\nx-kept: yes\r\nauthorization: Basic eDp5\r\n";
    let seen = scene.seen(with("GET", "/", lines, ""));
    for name in [
        "connection",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "te",
        "transfer-encoding",
        "upgrade",
    ] {
        assert!(!seen.has(name), "{name}: {seen:?}");
    }
    assert_eq!(seen.one("x-kept"), "yes");
    assert_eq!(seen.one("authorization"), "Basic eDp5");
}

#[test]
fn nor_does_what_connection_names() {
    let scene = Scene::start(&[]);
    let lines = "Connection: X-One, close , x-two,,\r\nconnection:\tX-THREE\r\nx-one: 1\r\n\
        X-Two: 2\r\nx-two: 2\r\nx-three: 3\r\nx-four: 4\r\n";
    let seen = scene.seen(with("GET", "/", lines, ""));
    for name in ["connection", "x-one", "x-two", "x-three", "close"] {
        assert!(!seen.has(name), "{name}: {seen:?}");
    }
    assert_eq!(seen.one("x-four"), "4");
}

/// Whoever could have them removed would be somebody else, or nobody, to the backend.
#[test]
fn who_asked_cannot_be_removed_that_way() {
    let scene = Scene::start(&[]);
    let named = "x-forwarded-for, x-forwarded-host, x-forwarded-proto, x-real-ip, host";
    let forged = "x-forwarded-for: 203.0.113.7\r\nx-real-ip: 203.0.113.7\r\n";
    for lines in ["", forged] {
        for connection in [named.to_owned(), named.to_uppercase(), format!("close, {named}")] {
            let lines = format!("connection: {connection}\r\n{lines}");
            let seen = scene.seen(with("GET", "/", &lines, ""));
            assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1", "{lines}");
            assert_eq!(seen.one("x-forwarded-host"), "example.com", "{lines}");
            assert_eq!(seen.one("x-forwarded-proto"), "http", "{lines}");
            assert_eq!(seen.one("x-real-ip"), "127.0.0.1", "{lines}");
            assert_eq!(seen.one("host"), "example.com", "{lines}");
        }
    }
}

/// Nor can the length of a body.
#[test]
fn a_body_stays_one_whatever_connection_names() {
    let scene = Scene::start(&[]);
    let lines = "connection: content-length\r\ncontent-length: 26\r\n";
    let body = "GET /smuggled HTTP/1.1\r\n\r\n";
    let seen = scene.seen(with("POST", "/", lines, body));
    assert_eq!(seen.text(), body);
    let lines = "connection: transfer-encoding\r\ntransfer-encoding: chunked\r\n";
    let seen = scene.seen(with("POST", "/", lines, "3\r\nabc\r\n0\r\n\r\n"));
    assert_eq!(seen.text(), "abc");
    scene.goes_on();
}

#[test]
fn of_te_only_trailers_is_passed_on() {
    let scene = Scene::start(&[]);
    for (lines, passed) in [
        ("te: trailers\r\n", true),
        ("te: trailers\r\nconnection: te\r\n", true),
        ("TE: gzip;q=0.5, Trailers\r\n", true),
        ("te: deflate\r\nte: trailers\r\n", true),
        ("te: gzip\r\n", false),
        ("te:\r\n", false),
        ("te: trailers-not\r\n", false),
    ] {
        let seen = scene.seen(with("GET", "/", lines, ""));
        let expected: &[&str] = if passed { &["trailers"] } else { &[] };
        assert_eq!(seen.all("te"), expected, "{lines}");
    }
}

#[test]
fn what_is_for_the_gateway_does_not_reach_the_caller() {
    let scene = Scene::start(&[]);
    let lines = "Connection: keep-alive, X-Inner\r\nKeep-Alive: timeout=5\r\nX-Inner: 1\r\n\
        Proxy-Connection: keep-alive\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-Kept: yes\r\n";
    let told = scene.told(format!("HTTP/1.1 200 OK\r\n{lines}content-length: 4\r\n\r\nfine"));
    for name in
        ["connection", "keep-alive", "x-inner", "proxy-connection", "proxy-authenticate", "upgrade"]
    {
        assert!(!told.has(name), "{name}: {told:?}");
    }
    assert_eq!((told.one("x-kept"), told.text().as_str()), ("yes", "fine"));
}

#[test]
fn an_answer_stays_one_whatever_connection_names() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    for named in ["content-length", "Content-Length, x-a", "date, content-type"] {
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        let lines = format!("connection: close, {named}\r\nx-a: b\r\ncontent-length: 4\r\n");
        backend.send(format!("HTTP/1.1 200 OK\r\n{lines}\r\nfine"));
        drop(backend);
        let answer = caller.answer();
        assert_eq!(answer.text(), "fine", "{named}");
        assert!(!answer.has("connection"), "{answer:?}");
    }
}
