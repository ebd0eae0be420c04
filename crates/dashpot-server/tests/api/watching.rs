//! `GET /` and `GET /v1/events`: what the dashboard is made of. How it looks is seen by a browser, in tests/dashboard.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Server, until};

const RULES: &str = "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['2/h']";

/// Somebody who watches.
struct Watcher {
    lines: BufReader<TcpStream>,
    status: u16,
}

impl Watcher {
    fn start(server: &Server, headers: &str) -> Self {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET /v1/events HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", server.address());
        stream.write_all(head.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        Self { lines, status }
    }

    /// What is told next; nothing if that was all.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.lines.read_line(&mut line).unwrap();
            // The last chunk of a body is empty.
            if read == 0 || line == "0\r\n" {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

fn ask(server: &Server, times: usize) {
    for _ in 0..times {
        server.request(&json!({"path": "/", "ip": "203.0.113.7"}));
    }
}

#[test]
fn counts_move_and_who_is_denied_is_named() {
    let server = Server::by(RULES);
    let mut watcher = Watcher::start(&server, "");
    assert_eq!(watcher.status, 200);
    let first = watcher.next().unwrap();
    assert_eq!(
        first["rules"],
        json!([{
            "name": "r", "allowed": 0, "near_limit": 0, "denied": 0, "shadow_denied": 0, "degraded": 0
        }])
    );
    assert_eq!(
        (&first["admin"], &first["needs_token"], &first["top"]),
        (&true.into(), &false.into(), &json!([]))
    );
    assert_eq!(first["health"]["store"], "memory");
    ask(&server, 5);
    let next = watcher.next().unwrap();
    assert_eq!((&next["rules"][0]["allowed"], &next["rules"][0]["denied"]), (&2.into(), &3.into()));
    assert_eq!(next["top"][0]["key"], json!(["ip=203.0.113.7"]));
    let passed = next["uptime"].as_f64().unwrap() - first["uptime"].as_f64().unwrap();
    assert!((0.9..5.0).contains(&passed), "once a second: {passed}");
    // Limits that are in no rule are told of when there are some.
    server.check(&json!({"key": "a", "limit": "5/h"})).allowed();
    assert_eq!(watcher.next().unwrap()["rules"][1]["name"], "(ad-hoc)");
}

/// What only administrators may know stays with them.
#[test]
fn without_the_token_it_is_what_metrics_tell() {
    let server = Server::with(RULES, &["--admin-token", "correct-horse"]);
    ask(&server, 5);
    for headers in ["", "authorization: Bearer wrong-horse\r\n"] {
        let told = Watcher::start(&server, headers).next().unwrap();
        assert_eq!((&told["admin"], &told["needs_token"]), (&false.into(), &true.into()));
        assert_eq!(told["top"], Value::Null);
        assert_eq!(told["rules"][0]["denied"], 3);
        assert!(!told.to_string().contains("203.0.113.7"), "{told}");
    }
    let told = Watcher::start(&server, "authorization: Bearer correct-horse\r\n").next().unwrap();
    assert_eq!((&told["admin"], &told["top"][0]["denied"]), (&true.into(), &3.into()));
    assert!(!told.to_string().contains("correct-horse"));
    // Without a token, who comes through a proxy or from another page is a stranger.
    let server = Server::by(RULES);
    for headers in [
        "x-forwarded-for: 203.0.113.9\r\n",
        "origin: http://evil.example\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        let told = Watcher::start(&server, headers).next().unwrap();
        assert_eq!((&told["admin"], &told["top"]), (&false.into(), &Value::Null), "{headers}");
    }
}

#[test]
fn where_servers_are_is_for_administrators() {
    let redis = dashpot_testkit::RedisServer::start();
    let rules = format!("[store]\nurl = '{}'\n{RULES}", redis.url());
    let server = Server::with(&rules, &["--admin-token", "correct-horse"]);
    let told = Watcher::start(&server, "").next().unwrap();
    assert_eq!(
        (&told["health"]["store"], &told["health"]["servers"]),
        (&"redis".into(), &json!([]))
    );
    let told = Watcher::start(&server, "authorization: Bearer correct-horse\r\n").next().unwrap();
    assert_eq!(told["health"]["servers"].as_array().unwrap().len(), 1);
}

#[test]
fn so_many_watch_and_no_more() {
    let server = Server::by(RULES);
    let mut watchers: Vec<Watcher> = (0..64).map(|_| Watcher::start(&server, "")).collect();
    assert!(watchers.iter_mut().all(|watcher| watcher.status == 200 && watcher.next().is_some()));
    server.get("/v1/events").problem(503);
    // Who leaves makes room.
    watchers.pop();
    until("room for one more", || Watcher::start(&server, "").status == 200);
    // And others are answered all the while.
    server.check(&json!({"key": "a", "limit": "5/h"})).allowed();
}

#[test]
fn who_watches_does_not_keep_it_from_stopping() {
    let mut server = Server::with(RULES, &["--drain-delay", "0s", "--drain-timeout", "15s"]);
    let mut watcher = Watcher::start(&server, "");
    assert!(watcher.next().is_some());
    let began = std::time::Instant::now();
    server.signal("-TERM");
    while watcher.next().is_some() {}
    assert!(server.ended().success());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

/// What is asked for by name is the page; in a terminal it is a list.
#[test]
fn browsers_get_the_page() {
    let server = Server::by(RULES);
    let browser = [("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let page = server.ask("GET", "/", &browser).is(200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("<!doctype html>"), "{}", page.text());
    assert_eq!(page.header("vary"), Some("accept"));
    let list = server.ask("GET", "/", &[("Accept", "*/*")]).is(200);
    assert!(list.header("content-type").unwrap().starts_with("text/plain"), "{list:?}");
    assert!(list.header("content-security-policy").is_none());
    let mut bytes = page.body.len();
    for (path, kind) in
        [("/dashboard/app.js", "text/javascript"), ("/dashboard/style.css", "text/css")]
    {
        let part = server.get(path).is(200);
        assert!(part.header("content-type").unwrap().starts_with(kind));
        bytes += part.body.len();
        assert!(page.text().contains(path), "the page asks for {path}");
    }
    assert!(bytes < 100_000, "{bytes} bytes");
    for answer in [page, server.get("/dashboard/app.js"), server.get("/dashboard/style.css")] {
        let policy = answer.header("content-security-policy").unwrap();
        for said in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(said), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        // Nothing is asked for elsewhere.
        let text = answer.text().replace("http://www.w3.org/", "");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "something from elsewhere"
        );
    }
}
