//! The access log: a line for each request, and nothing in it that should not be.

use std::io::Write;

use dashpot_testkit::process::{free_port, until};
use serde_json::Value;

use crate::backend::{Backend, answer};
use crate::caller::{PATIENCE, get, request};
use crate::home::Home;
use crate::proxy::{PORTS, Proxy};

/// The lines of the log in a file, as soon as there are so many.
#[track_caller]
pub(crate) fn lines(proxy: &Proxy, count: usize) -> Vec<String> {
    let lines = || -> Vec<String> { proxy.home.read("log").lines().map(str::to_owned).collect() };
    until("lines in the log", PATIENCE, || (lines().len() >= count).then_some(()));
    assert_eq!(lines().len(), count, "{:#?}", lines());
    lines()
}

/// What a line says: caller, method, path, version, status and bytes.
#[track_caller]
pub(crate) fn parts(line: &str) -> [String; 6] {
    let parts: Vec<&str> = line.split(' ').collect();
    let [time, ip, method, path, version, status, bytes, seconds] = parts[..] else {
        panic!("eight fields: {line:?}");
    };
    assert!(is_time(time), "{line:?}");
    let seconds: f64 = seconds.parse().unwrap();
    assert!((0.0..60.0).contains(&seconds), "{line:?}");
    [ip, method, path, version, status, bytes].map(str::to_owned)
}

/// As in `2026-11-16T09:00:00.123Z`.
fn is_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

#[test]
fn a_line_says_who_asked_what_and_what_came_of_it() {
    let backend = Backend::answering(|seen, stream| {
        let body = "x".repeat(if seen.method() == "HEAD" { 0 } else { 1234 });
        write!(stream, "HTTP/1.1 203 So\r\ncontent-length: 1234\r\n\r\n{body}")
    });
    let rules = "[[rule]]\nname = 'few'\nmatch = { path = '/few' }\nlimits = ['1/day']\n";
    let proxy = Proxy::with(&backend, rules, &["--access-log", "log"]);
    let mut caller = proxy.caller_from(7);
    caller.get("/api/books");
    caller.ask("HEAD", "/api/books", &[], "");
    caller.ask("POST", "/few", &[], "body");
    let denied = caller.get("/few").body.len().to_string();
    caller.send("GET / HTTP/1.0\r\nhost: localhost\r\n\r\n");
    caller.answer();
    let told = lines(&proxy, 5);
    let of = |method: &str, path: &str, version: &str, status: &str, bytes: &str| {
        ["127.0.0.7", method, path, version, status, bytes].map(str::to_owned)
    };
    assert_eq!(parts(&told[0]), of("GET", "/api/books", "HTTP/1.1", "203", "1234"));
    assert_eq!(parts(&told[1]), of("HEAD", "/api/books", "HTTP/1.1", "203", "0"));
    assert_eq!(parts(&told[2]), of("POST", "/few", "HTTP/1.1", "203", "1234"));
    assert_eq!(parts(&told[3]), of("GET", "/few", "HTTP/1.1", "429", &denied));
    assert_eq!(parts(&told[4]), of("GET", "/", "HTTP/1.0", "203", "1234"));
}

#[test]
fn machines_get_an_object_a_line() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--access-log", "log", "--log-format", "json"]);
    proxy.get("/a%20b?secret=1");
    let told: Value = serde_json::from_str(&lines(&proxy, 1)[0]).unwrap();
    let names: Vec<&String> = told.as_object().unwrap().keys().collect();
    let mut expected = ["time", "ip", "method", "path", "version", "status", "bytes", "seconds"];
    expected.sort_unstable();
    assert_eq!(names, expected, "{told}");
    assert!(is_time(told["time"].as_str().unwrap()), "{told}");
    assert_eq!(told["ip"], "127.0.0.1");
    assert_eq!((&told["method"], &told["path"]), (&"GET".into(), &"/a%20b".into()), "{told}");
    assert_eq!(told["version"], "HTTP/1.1");
    assert_eq!((&told["status"], &told["bytes"]), (&200.into(), &5.into()), "{told}");
    assert!((0.0..60.0).contains(&told["seconds"].as_f64().unwrap()), "{told}");
}

#[test]
fn it_may_go_to_the_standard_output() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--access-log", "-"]);
    proxy.get("/seen");
    let line = until("the line", PATIENCE, || {
        proxy.stdout().lines().find(|line| line.contains("/seen")).map(str::to_owned)
    });
    assert_eq!(parts(&line)[2], "/seen");
    // It is off, if nobody asks for it.
    let proxy = Proxy::start(&backend, &[]);
    proxy.get("/unseen");
    proxy.await_metric(r#"dashpot_http_answers_total{door="proxy",status="2xx"}"#, 1.0);
    assert!(!proxy.stdout().contains("/unseen"), "{}", proxy.stdout());
}

#[test]
fn what_was_there_before_stays() {
    let backend = Backend::start();
    let home = Home::new();
    home.write("log", "of yesterday\n");
    let url = backend.url();
    let flags = [&["proxy", "--upstream", &url, "--access-log", "log"], &PORTS[..]].concat();
    let proxy = Proxy::run(home, &flags, |_| {});
    proxy.get("/today");
    let told = lines(&proxy, 2);
    assert_eq!(told[0], "of yesterday");
    assert_eq!(parts(&told[1])[2], "/today");
}

#[test]
fn no_query_no_header_and_no_key_is_in_it() {
    let backend = Backend::answering(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nset-cookie: SECRET\r\ncontent-length: 6\r\n\r\nSECRET")
    });
    let rules =
        "[[rule]]\nname = 'k'\nby = ['header:x-api-key', 'query:token']\nlimits = ['1/day']\n";
    for format in ["text", "json"] {
        let flags = ["--access-log", "log", "--log-format", format];
        let proxy = Proxy::with(&backend, rules, &flags);
        let keys = [
            "x-api-key: SECRET",
            "authorization: Bearer SECRET",
            "cookie: a=SECRET",
            "referer: http://x/SECRET",
            "user-agent: SECRET",
        ];
        for nth in 0..6 {
            let text = request("POST", "/p?token=SECRET", &keys, "SECRET");
            let mut caller = proxy.caller();
            caller.send(text.replace("host: localhost", "host: SECRET"));
            let status = caller.answer().status;
            assert_eq!(status, if nth == 0 { 200 } else { 429 });
        }
        for line in lines(&proxy, 6) {
            assert!(!line.contains("SECRET") && !line.contains('?'), "{line}");
        }
        assert!(!proxy.log().contains("SECRET"), "{}", proxy.log());
    }
}

#[test]
fn whom_a_trusted_proxy_speaks_for_is_told() {
    let backend = Backend::start();
    let identity = "[identity]\ntrusted_proxies = ['127.0.0.1/32']\n";
    let proxy = Proxy::with(&backend, identity, &["--access-log", "log"]);
    let line = "x-forwarded-for: 6.6.6.6, 203.0.113.7";
    proxy.caller().ask("GET", "/", &[line], "");
    assert_eq!(parts(&lines(&proxy, 1)[0])[0], "203.0.113.7");
    proxy.caller_from(9).ask("GET", "/", &[line], "");
    assert_eq!(parts(&lines(&proxy, 2)[1])[0], "127.0.0.9", "a stranger is who connected");
}

#[test]
fn what_the_backend_did_not_do_is_in_it() {
    let home = Home::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let flags = [&["proxy", "--upstream", &url, "--access-log", "log"], &PORTS[..]].concat();
    let proxy = Proxy::run(home, &flags, |_| {});
    let length = proxy.get("/gone").body.len().to_string();
    let told = parts(&lines(&proxy, 1)[0]);
    let expected = ["127.0.0.1", "GET", "/gone", "HTTP/1.1", "502", &length];
    assert_eq!(told, expected.map(str::to_owned));

    let backend = Backend::answering(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it")?;
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let proxy = Proxy::start(&backend, &["--access-log", "log"]);
    assert!(proxy.caller().try_answer_to(&get("/half")).is_err());
    let told = parts(&lines(&proxy, 1)[0]);
    assert_eq!((told[4].as_str(), told[5].as_str()), ("200", "10"), "what was sent: {told:?}");
}

#[test]
fn who_hangs_up_is_in_it_too() {
    let backend = Backend::answering(|seen, stream| {
        if seen.path() == "/half" {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it")?;
            let _ = std::io::Read::read(stream, &mut [0]);
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        stream.write_all(&answer("200 OK", "hello"))
    });
    let proxy = Proxy::start(&backend, &["--access-log", "log"]);
    let mut caller = proxy.caller();
    caller.send(get("/half"));
    caller.head().unwrap();
    caller.exactly(10).unwrap();
    drop(caller);
    let told = parts(&lines(&proxy, 1)[0]);
    assert_eq!([&told[2], &told[4], &told[5]], ["/half", "200", "10"]);
}

/// A tunnel ends when it is closed, and is a request until then.
#[test]
fn a_tunnel_has_a_line_when_it_ends() {
    let backend = Backend::answering(|_, stream| {
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo";
        write!(stream, "{head}\r\n\r\n")?;
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let proxy = Proxy::start(&backend, &["--access-log", "log"]);
    let mut caller = proxy.caller();
    caller.send(request("GET", "/tunnel", &["connection: upgrade", "upgrade: echo"], ""));
    assert_eq!(caller.head().unwrap().status, 101);
    drop(caller);
    let told = parts(&lines(&proxy, 1)[0]);
    assert_eq!([&told[1], &told[2], &told[4]], ["GET", "/tunnel", "101"]);
}

/// Who waits in a queue waits for the answer, and so it is told and counted.
#[test]
fn seconds_are_those_that_the_caller_waited() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";
    let proxy = Proxy::with(&backend, rules, &["--access-log", "log"]);
    proxy.statuses("/", &[], 2);
    let told = lines(&proxy, 2);
    let seconds = |line: &String| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(seconds(&told[0]) < 0.4, "{told:?}");
    assert!((0.4..5.0).contains(&seconds(&told[1])), "{told:?}");
    let sum = proxy.metric(r#"dashpot_http_seconds_sum{door="proxy"}"#);
    assert!((0.4..5.0).contains(&sum), "{sum}");
}
