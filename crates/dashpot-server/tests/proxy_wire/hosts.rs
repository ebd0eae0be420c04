//! Whom the caller meant: the backend is told the same.

use crate::multiplexed::Multiplexed;
use crate::scene::{OK, Scene};

#[test]
fn a_host_stays_as_it_was_written() {
    let scene = Scene::start(&[]);
    for host in ["example.com", "Example.COM:8000", "203.0.113.7:1", "[2001:DB8::1]:80", "a_b-c.d"]
    {
        let seen = scene.seen(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(seen.one("host"), host);
        assert_eq!(seen.one("x-forwarded-host"), host);
    }
}

/// As those do who know that they speak to a proxy. What the line says is what counts.
#[test]
fn a_request_line_may_name_the_host() {
    let scene = Scene::start(&[]);
    for (target, line, host) in [
        ("http://named.example/a?b=c", "GET /a?b=c HTTP/1.1", "named.example"),
        ("http://Named.example:8000/%2F//x", "GET /%2F//x HTTP/1.1", "Named.example:8000"),
        ("http://named.example", "GET / HTTP/1.1", "named.example"),
        ("http://named.example/", "GET / HTTP/1.1", "named.example"),
        ("http://named.example?q", "GET /?q HTTP/1.1", "named.example"),
        ("HTTP://named.example/", "GET / HTTP/1.1", "named.example"),
        ("http://[2001:db8::1]:81/a", "GET /a HTTP/1.1", "[2001:db8::1]:81"),
    ] {
        for header in ["other.example", host] {
            let seen = scene.seen(format!("GET {target} HTTP/1.1\r\nhost: {header}\r\n\r\n"));
            assert_eq!(seen.first, line, "{target}");
            assert_eq!(seen.one("host"), host, "{target}");
            assert_eq!(seen.one("x-forwarded-host"), host, "{target}");
        }
    }
}

/// It goes to the backend, and nowhere else, whoever is named.
#[test]
fn a_named_host_is_not_connected_to() {
    let scene = Scene::start(&[]);
    let admin = scene.admin();
    let seen = scene.seen(format!("GET http://{admin}/metrics HTTP/1.1\r\nhost: {admin}\r\n\r\n"));
    assert_eq!(seen.first, "GET /metrics HTTP/1.1");
    assert_eq!(seen.one("host"), admin.to_string());
}

#[test]
fn over_http_2_the_authority_is_the_host() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    for (host, header) in [
        ("example.com", None),
        ("Example.com:8000", None),
        ("[2001:db8::1]:81", None),
        ("example.com:81", Some("example.com:81")),
    ] {
        let mut request = http::Request::get(format!("http://{host}/a?b"));
        if let Some(header) = header {
            request = request.header("host", header);
        }
        let asked = caller.ask(request.body(()).unwrap());
        let mut backend = scene.accept();
        let seen = backend.request();
        assert_eq!(seen.first, "GET /a?b HTTP/1.1");
        assert_eq!(seen.one("host"), host);
        assert_eq!(seen.one("x-forwarded-host"), host);
        backend.send(OK);
        assert_eq!(asked.answer().status(), 200);
    }
}
