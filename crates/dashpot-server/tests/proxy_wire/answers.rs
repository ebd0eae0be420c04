//! What the caller sees of an answer: what the backend said.

use std::io::Write as _;
use std::thread;

use crate::scene::{FINE, OK, Scene, get, with};
use crate::wire::chunk;

#[test]
fn a_status_arrives_whatever_it_is() {
    let scene = Scene::start(&[]);
    let statuses = [200, 201, 202, 206, 299, 300, 301, 307, 400, 401, 404, 418, 429, 451, 499];
    for status in statuses.into_iter().chain([500, 502, 503, 504, 511, 599]) {
        let answer = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 4\r\n\r\nbody");
        let told = scene.told(answer);
        assert_eq!((told.status(), told.text().as_str()), (status, "body"));
    }
}

#[test]
fn an_answer_needs_no_reason() {
    let scene = Scene::start(&[]);
    for line in ["HTTP/1.1 200 ", "HTTP/1.1 200", "HTTP/1.1 200 It's (all) good, \"fine\""] {
        let told = scene.told(format!("{line}\r\ncontent-length: 2\r\n\r\nok"));
        assert_eq!((told.status(), told.text().as_str()), (200, "ok"), "{line}");
    }
}

#[test]
fn headers_arrive_as_they_are_and_in_their_order() {
    let scene = Scene::start(&[]);
    let lines = b"Server: a backend/1.0\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nX-Empty:\r\n\
        Set-Cookie: a=1; Path=/\r\nX-Beyond: caf\xe9 \xff\r\nSet-Cookie: b=2\r\nset-cookie: a=3\r\n\
        Location: http://127.0.0.1:3000/elsewhere?a=b\r\nETag: \"x\"\r\nVary: a\r\nvary: b, c\r\n\
        X-Accel-Buffering: no\r\nWWW-Authenticate: Basic realm=\"x, y\"\r\nunder_scored: yes\r\n";
    let answer = [&b"HTTP/1.1 401 No\r\ncontent-length: 2\r\n"[..], lines, b"\r\nno"].concat();
    let told = scene.told(answer);
    assert_eq!(told.one("server"), "a backend/1.0");
    assert_eq!(told.one("date"), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(told.one("x-empty"), "");
    assert_eq!(told.one("x-beyond"), "caf\u{e9} \u{ff}");
    assert_eq!(told.all("set-cookie"), ["a=1; Path=/", "b=2", "a=3"]);
    assert_eq!(told.one("location"), "http://127.0.0.1:3000/elsewhere?a=b");
    assert_eq!(told.one("etag"), "\"x\"");
    assert_eq!(told.all("vary"), ["a", "b, c"]);
    assert_eq!(told.one("x-accel-buffering"), "no");
    assert_eq!(told.one("www-authenticate"), "Basic realm=\"x, y\"");
    assert_eq!(told.one("under_scored"), "yes");
    assert_eq!(told.one("content-length"), "2");
}

#[test]
fn a_hundred_headers_arrive_and_no_more() {
    let scene = Scene::start(&[]);
    let with = |count: u32| {
        let many: String = (0..count).map(|nth| format!("set-cookie: a{nth}=b\r\n")).collect();
        scene.told(format!("HTTP/1.1 200 OK\r\n{many}content-length: 0\r\n\r\n"))
    };
    let told = with(99);
    assert_eq!((told.status(), told.all("set-cookie").len()), (200, 99));
    assert_eq!(with(100).status(), 502);
}

/// What says its length twice is as long as its chunks.
#[test]
fn chunks_count_where_a_length_is_said_as_well() {
    let scene = Scene::start(&[]);
    for length in [3, 5, 8] {
        let told = scene.told(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\n\r\n"
        ));
        assert_eq!((told.status(), told.text().as_str()), (200, "hello"), "{length}");
        assert!(!told.has("content-length"), "{told:?}");
    }
}

#[test]
fn a_long_header_arrives() {
    let scene = Scene::start(&[]);
    let long = "x".repeat(60_000);
    let told = scene.told(format!("HTTP/1.1 200 OK\r\nx: {long}\r\ncontent-length: 0\r\n\r\n"));
    assert_eq!((told.status(), told.one("x").len()), (200, 60_000));
}

#[test]
fn a_body_arrives_however_its_end_is_told() {
    let scene = Scene::start(&[]);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let told = scene.told(format!("{chunked}3\r\nabc\r\n00002;x=y\r\nde\r\n0\r\n\r\n"));
    assert_eq!(told.text(), "abcde");
    let told = scene.told(format!("{chunked}0\r\n\r\n"));
    assert_eq!(told.text(), "");
    let told = scene.told("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde");
    assert_eq!((told.one("content-length"), told.text().as_str()), ("5", "abcde"));
    let told = scene.told("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_eq!((told.one("content-length"), told.text().as_str()), ("0", ""));
    // Until it closes. Who is told of the end some other way knows that it was whole.
    let told = scene.told("HTTP/1.1 200 OK\r\n\r\nabcde");
    assert!(told.is_chunked(), "{told:?}");
    assert_eq!(told.text(), "abcde");
}

#[test]
fn five_megabytes_arrive_whole() {
    let scene = Scene::start(&[]);
    let body: Vec<u8> = (0..5_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    let length = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let with_length = [length.as_bytes(), &body].concat();
    let mut chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for piece in body.chunks(70_001) {
        chunked.extend(chunk(piece));
    }
    chunked.extend(b"0\r\n\r\n");
    let unending = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &body].concat();
    for answer in [with_length, chunked, unending] {
        let mut caller = scene.connect();
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        let writing = thread::spawn(move || backend.stream.write_all(&answer));
        let told = caller.answer();
        assert!(told.body == body, "{} bytes, and not the same", told.body.len());
        writing.join().unwrap().unwrap();
    }
}

/// One connection for all of them: each is read to its end and no further.
#[test]
fn answers_without_a_body_have_none() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    let mut ask = |method: &str, answer: &str| {
        caller.send(with(method, "/", "", ""));
        let mut backend = scene.accept();
        backend.request();
        backend.send(answer.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"));
        caller.head()
    };
    let none = ask("GET", "HTTP/1.1 204 No Content\r\nx-a: b\r\n\r\n");
    assert_eq!((none.status(), none.one("x-a")), (204, "b"));
    assert!(!none.has("transfer-encoding") && !none.has("content-length"), "{none:?}");
    let unchanged = ask("GET", "HTTP/1.1 304 Not Modified\r\netag: \"7\"\r\n\r\n");
    assert_eq!((unchanged.status(), unchanged.one("etag")), (304, "\"7\""));
    assert!(!unchanged.has("transfer-encoding"), "{unchanged:?}");
    let unchanged = ask("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 1234\r\n\r\n");
    assert_eq!(unchanged.status(), 304);
    let head = ask("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\nx-a: b\r\n\r\n");
    assert_eq!((head.status(), head.one("content-length"), head.one("x-a")), (200, "1234", "b"));
    let head = ask("HEAD", "HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n");
    assert_eq!(head.status(), 404);
    let head = ask("HEAD", "HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(head.status(), 200);
    assert!(!head.has("content-length"), "nobody knows how long it would be: {head:?}");
    let ok = ask("GET", OK);
    assert_eq!((ok.status(), ok.one("content-length")), (200, "0"));
}

/// What is said before the answer is not taken for it.
#[test]
fn the_answer_is_the_one_that_is_final() {
    let scene = Scene::start(&[]);
    for early in ["100 Continue\r\n", "102 Processing\r\n", "103 Early Hints\r\nlink: </a>\r\n"] {
        let mut caller = scene.connect();
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        backend.send(format!("HTTP/1.1 {early}\r\n{FINE}"));
        drop(backend);
        let mut answer = caller.answer();
        while answer.status() < 200 {
            answer = caller.answer();
        }
        assert_eq!((answer.status(), answer.text().as_str()), (200, "fine"), "after {early}");
    }
}
