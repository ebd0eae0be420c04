//! What the backend sees of a request: what the caller said.

use std::fmt::Write as _;

use crate::message::Fields;
use crate::scene::{OK, Scene, get, post, with};
use crate::wire::chunk;

#[test]
fn methods_arrive_as_they_are() {
    let scene = Scene::start(&[]);
    let usual = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"];
    for method in usual.into_iter().chain(["PROPFIND", "M-SEARCH", "get", "X!#$%&'*+-.^_`|~9"]) {
        let seen = scene.seen(with(method, "/books/7", "", ""));
        assert_eq!(seen.first, format!("{method} /books/7 HTTP/1.1"));
    }
}

#[test]
fn a_target_arrives_byte_for_byte() {
    let scene = Scene::start(&[]);
    let long = format!("/{}", "a/".repeat(4000));
    let targets = [
        "/",
        "/?",
        "/?a",
        "/books?sort=title&sort=year&empty=&=",
        "/a?b?c/d?/e",
        "/a%2Fb%2fc%20d%25",
        "/caf%C3%A9?q=%E2%82%AC+%26",
        "/%00%0a%0D%7f",
        "//double//slashes///",
        "/./a/../b/%2e%2E/c/..",
        "/-._~!$&'()*+,;=:@/;v=1;w?-._~!$&'()*+,;=:@/",
        "/http://example.org/inside",
        "/CaSe/StayS",
        &long,
    ];
    for target in targets {
        let seen = scene.seen(get(target));
        assert_eq!(seen.first, format!("GET {target} HTTP/1.1"));
    }
}

#[test]
fn the_server_as_a_whole_can_be_asked_about() {
    let scene = Scene::start(&[]);
    let seen = scene.seen(with("OPTIONS", "*", "", ""));
    assert_eq!(seen.first, "OPTIONS * HTTP/1.1");
    assert_eq!(seen.one("host"), "example.com");
}

/// All that the caller said, who asked, and nothing else.
#[test]
fn nothing_is_added_but_who_asked() {
    let scene = Scene::start(&[]);
    let lines = "user-agent: test\r\naccept: */*\r\n";
    let mut seen = scene.seen(with("GET", "/", lines, ""));
    seen.fields.sort();
    let expected = [
        ("accept", "*/*"),
        ("host", "example.com"),
        ("user-agent", "test"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "example.com"),
        ("x-forwarded-proto", "http"),
        ("x-real-ip", "127.0.0.1"),
    ];
    assert_eq!(seen.fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(seen.body, b"");
}

#[test]
fn unusual_headers_arrive_as_they_are() {
    let scene = Scene::start(&[]);
    let fields = [
        ("x-empty", &b""[..]),
        ("x-tab", b"a\tb  c"),
        ("x-beyond-ascii", b"\x80 caf\xe9 \xc3\xa9 \xff"),
        ("x-quoted", br#""a, b";c="\"d\"", e"#),
        ("x!#$%&'*+-.^_`|~9", b"a name of all that a name may have"),
        ("under_scored", b"is not of those that say who asked"),
        ("cookie", b"a=b; c=d;e"),
        ("authorization", b"Bearer a.b.c"),
        ("x-long", &[b'y'; 16 * 1024]),
    ];
    let mut request = b"GET / HTTP/1.1\r\nhost: example.com\r\n".to_vec();
    for (name, value) in fields {
        request.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    request.extend(b"\r\n");
    let seen = scene.seen(request);
    for (name, value) in fields {
        assert_eq!(seen.one(name), crate::message::latin(value), "{name}");
    }
}

#[test]
fn headers_that_come_more_than_once_stay_in_their_order() {
    let scene = Scene::start(&[]);
    let lines = "x-a: 1\r\nx-b: 1\r\nX-A: 2, 3\r\nx-a:\r\nx-b: 2\r\nx-A: 1\r\n";
    let seen = scene.seen(with("GET", "/", lines, ""));
    assert_eq!(seen.all("x-a"), ["1", "2, 3", "", "1"]);
    assert_eq!(seen.all("x-b"), ["1", "2"]);
}

#[test]
fn as_many_headers_as_may_be_arrive() {
    let scene = Scene::start(&[]);
    let mut lines = String::new();
    for nth in 1..100 {
        write!(lines, "x-{nth}: {nth}\r\n").unwrap();
    }
    let seen = scene.seen(with("GET", "/", &lines, ""));
    let ours = |(name, _): &(String, String)| name[2..].parse::<u32>().is_ok();
    let came: Fields = seen.fields.into_iter().filter(ours).collect();
    assert_eq!(came.len(), 99, "{came:?}");
}

#[test]
fn a_body_keeps_its_length() {
    let scene = Scene::start(&[]);
    let seen = scene.seen(post("/books", "title=Emma"));
    assert_eq!(seen.one("content-length"), "10");
    assert!(!seen.has("transfer-encoding"), "{seen:?}");
    assert_eq!(seen.text(), "title=Emma");
    // Whatever the method.
    for method in ["GET", "DELETE", "OPTIONS", "PUT"] {
        let seen = scene.seen(with(method, "/", "content-length: 3\r\n", "abc"));
        assert_eq!((seen.one("content-length"), seen.text().as_str()), ("3", "abc"), "{method}");
    }
}

#[test]
fn a_chunked_body_stays_chunked() {
    let scene = Scene::start(&[]);
    let body = "3\r\nabc\r\n00A;name=value\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n";
    let seen = scene.seen(with("POST", "/", "Transfer-Encoding: Chunked\r\n", body));
    assert!(seen.is_chunked() && !seen.has("content-length"), "{seen:?}");
    assert_eq!(seen.text(), "abc0123456789x");
    let seen = scene.seen(with("PUT", "/", "transfer-encoding: chunked\r\n", "0\r\n\r\n"));
    assert_eq!(seen.body, b"");
}

#[test]
fn no_body_and_an_empty_one_are_told_apart() {
    let scene = Scene::start(&[]);
    let empty = scene.seen(post("/", ""));
    assert_eq!(empty.one("content-length"), "0");
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let none = scene.seen(with(method, "/", "", ""));
        assert!(!none.has("content-length") && !none.has("transfer-encoding"), "{none:?}");
    }
}

#[test]
fn five_megabytes_arrive_whole() {
    let scene = Scene::start(&[]);
    let body: Vec<u8> = (0..5_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    let length = format!("content-length: {}\r\n", body.len());
    let with_length = [with("POST", "/", &length, "").into_bytes(), body.clone()].concat();
    let mut chunked = with("POST", "/", "transfer-encoding: chunked\r\n", "").into_bytes();
    for piece in body.chunks(70_001) {
        chunked.extend(chunk(piece));
    }
    chunked.extend(b"0\r\n\r\n");
    for request in [with_length, chunked] {
        let mut caller = scene.connect();
        let mut writer = caller.stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &request));
        let mut backend = scene.accept();
        let seen = backend.request();
        assert!(seen.body == body, "{} bytes, and not the same", seen.body.len());
        backend.send(OK);
        writing.join().unwrap().unwrap();
        assert_eq!(caller.answer().status(), 200);
    }
}
