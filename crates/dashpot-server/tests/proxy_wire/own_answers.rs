//! What the gateway answers itself, and when.

use dashpot_testkit::process::free_port;
use socket2::{Domain, Socket, Type};

use crate::scene::{Scene, command, get, listener, post, with};
use crate::service::Directory;
use crate::wire::Wire;

/// In front of whoever listens there, or does not.
fn in_front_of(port: u16, flags: &[&str]) -> Scene {
    let home = Directory::new();
    let upstream = format!("http://127.0.0.1:{port}");
    let command = command(home.path(), &[flags, &["--upstream", &upstream]].concat());
    Scene::run(home, listener(), command)
}

#[test]
fn who_is_denied_is_told_when_to_come_back() {
    let scene = Scene::start(&["--limit", "1/h"]);
    scene.seen(get("/"));
    let mut caller = scene.connect();
    // Again and again, over one connection, with a body and without.
    for request in [get("/"), post("/", "abc"), get("/")] {
        caller.send(request);
        let denied = caller.answer();
        let problem = denied.is_problem(429);
        assert_eq!(problem["error"], "rate_limited");
        let wait: u64 = denied.one("retry-after").parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
        assert!(denied.one("ratelimit").contains(";r=0;t="), "{denied:?}");
    }
    caller.send(with("HEAD", "/", "", ""));
    let denied = caller.head();
    assert_eq!(denied.status(), 429);
    caller.send(get("/"));
    caller.answer().is_problem(429);
}

#[test]
fn a_rule_may_say_what_to_answer_instead() {
    let rules = "[[rule]]\nname = 'all'\nlimits = ['1/h']\n\
        on_deny = { status = 503, body = 'later', content_type = 'text/x-later' }\n";
    let scene = Scene::with_rules(rules, &[]);
    scene.seen(get("/"));
    let mut caller = scene.connect();
    caller.send(get("/"));
    let denied = caller.answer();
    assert_eq!((denied.status(), denied.text().as_str()), (503, "later"));
    assert_eq!(denied.one("content-type"), "text/x-later");
}

#[test]
fn nobody_is_connected_to_anybody() {
    let scene = Scene::start(&[]);
    for target in ["example.com:443", "127.0.0.1:1"] {
        let mut caller = scene.connect();
        caller.send(format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n"));
        caller.answer().is_problem(405);
    }
    scene.goes_on();
}

#[test]
fn a_request_line_that_is_too_long_is_refused() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get(&format!("/{}", "a".repeat(70_000))));
    let refused = caller.answer();
    // The line is part of the head, so that either is true.
    assert!(matches!(refused.status(), 414 | 431), "{refused:?}");
    scene.goes_on();
    // One that is not is none.
    let seen = scene.seen(get(&format!("/{}", "a".repeat(60_000))));
    assert!(seen.first.len() > 60_000);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let scene = Scene::start(&[]);
    let long = format!("x-long: {}\r\n", "a".repeat(70_000));
    let much = format!("x-long: {}\r\n", "a".repeat(10_000)).repeat(7);
    let many: String = (0..100).map(|nth| format!("x-{nth}: a\r\n")).collect();
    for lines in [long, much, many] {
        let mut caller = scene.connect();
        caller.send(with("GET", "/", &lines, ""));
        let refused = caller.answer();
        assert_eq!(refused.status(), 431, "{refused:?}");
    }
    scene.goes_on();
}

#[test]
fn a_backend_that_is_not_there_is_told() {
    let scene = in_front_of(free_port(), &[]);
    let mut caller = scene.connect();
    for request in [get("/"), post("/", "abc"), get("/")] {
        caller.send(request);
        caller.answer().is_problem(502);
    }
    let failures = scene.metric(r#"dashpot_upstream_failures_total{reason="connect"}"#);
    assert_eq!(failures, 3.0);
}

#[test]
fn a_backend_that_does_not_answer_http_is_told() {
    let scene = Scene::start(&[]);
    let wrong = [
        "",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n",
        "HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/9.9 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcde",
        "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n",
    ];
    for answer in wrong {
        let mut caller = scene.connect();
        caller.send(post("/", "abc"));
        let mut backend = scene.accept();
        backend.request();
        backend.send(answer);
        drop(backend);
        caller.answer().is_problem(502);
    }
    let failures = scene.metric(r#"dashpot_upstream_failures_total{reason="broken"}"#);
    assert_eq!(failures, wrong.len() as f64);
    scene.goes_on();
}

/// It listens, and there is no room for one more to wait until it accepts.
#[test]
fn a_backend_that_does_not_accept_is_told() {
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    let mut connect = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let connected = socket.connect_timeout(&address, std::time::Duration::from_millis(300));
        waiting.push(socket);
        connected.is_ok()
    };
    while connect() {}
    let port = address.as_socket().unwrap().port();
    let scene = in_front_of(port, &["--connect-timeout", "500ms"]);
    let begun = std::time::Instant::now();
    let mut caller = scene.connect();
    caller.send(get("/"));
    caller.answer().is_problem(504);
    let took = begun.elapsed();
    assert!(took.as_millis() >= 400, "{took:?}");
    assert!(took.as_secs() < 4, "{took:?}");
    let failures = scene.metric(r#"dashpot_upstream_failures_total{reason="connect_timeout"}"#);
    assert_eq!(failures, 1.0);
}

/// Its own answers say no more about the backend than that.
#[test]
fn an_answer_of_its_own_does_not_tell_where_the_backend_is() {
    let port = free_port();
    let scene = in_front_of(port, &[]);
    let mut caller = Wire::to(scene.address);
    caller.send(get("/"));
    let answer = caller.answer();
    let said = format!("{answer:?}{}", answer.text());
    assert!(!said.contains(&port.to_string()), "{said}");
}
