//! What callers by HTTP/2 are told, and charged.

use std::io::Write;
use std::time::Duration;

use http::Request;

use crate::access_log::{lines, parts};
use crate::backend::{Backend, answer};
use crate::http2::Connection;
use crate::proxy::Proxy;

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://localhost{path}")).body(()).unwrap()
}

#[test]
fn a_denial_is_that_of_everywhere() {
    let backend = Backend::start();
    let proxy = Proxy::with(
        &backend,
        "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['1/h']\n",
        &["--access-log", "log"],
    );
    let mut connection = Connection::to(&proxy);
    let (head, body) = connection.ask(get("/"));
    assert_eq!((head.status.as_u16(), &body[..]), (200, &b"hello"[..]));
    assert_eq!(head.headers["ratelimit-policy"], r#""r";q=1;w=3600"#);
    let (head, body) = connection.ask(get("/"));
    assert_eq!(head.status, 429);
    let wait: u64 = head.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3590..=3600).contains(&wait), "{wait}");
    assert_eq!(head.headers["content-type"], "application/problem+json");
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["r"]));
    // The same caller by another protocol is the same caller.
    assert_eq!(proxy.get("/").status, 429);
    assert_eq!(backend.count(), 1);
    let told: Vec<_> = lines(&proxy, 3).iter().map(|line| parts(line)).collect();
    assert!(told[0][3].starts_with("HTTP/2"), "{told:?}");
    assert_eq!([&told[1][4], &told[2][3]], ["429", "HTTP/1.1"]);
}

/// As the page about headers says of gRPC clients.
#[test]
fn a_grpc_client_is_denied_in_its_own_words() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, "[[rule]]\nname = 'r'\nlimits = ['1/h']\n");
    let mut connection = Connection::to(&proxy);
    connection.ask(get("/"));
    let request =
        Request::post("http://localhost/a.B/C").header("content-type", "application/grpc");
    let (head, _) = connection.ask(request.body(()).unwrap());
    assert_eq!((head.status.as_u16(), &head.headers["grpc-status"]), (200, &"8".parse().unwrap()));
    assert!(head.headers.contains_key("grpc-retry-pushback-ms"), "{head:?}");
    assert_eq!(backend.count(), 1);
}

#[test]
fn bytes_are_charged() {
    let backend = Backend::answering(|seen, stream| {
        let count: usize = seen.path()[1..].parse().map_err(std::io::Error::other)?;
        stream.write_all(&answer("200 OK", &"x".repeat(count)))
    });
    let rules = "[[rule]]\nname = 'bytes'\nlimits = ['1M/year']\nsettle = 'bytes'\n";
    let proxy = Proxy::by(&backend, rules);
    let mut connection = Connection::to(&proxy);
    let mut left = 1_000_000;
    for count in [1, 12_345, 300_000] {
        assert_eq!(connection.ask(get(&format!("/{count}"))).1.len(), count);
        left -= count;
        let told = || {
            let head = proxy.get("/0");
            usize::try_from(head.left()).unwrap() + 1
        };
        // An answer's end is known here before it is settled there.
        let reached = (0..400).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            told() == left
        });
        assert!(reached, "{} are left, and not {left}", told());
    }
}

#[test]
fn a_rule_by_host_goes_by_the_authority() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'h'\nmatch = { host = 'a.example' }\nlimits = ['1/h']\n";
    let proxy = Proxy::by(&backend, rules);
    let mut connection = Connection::to(&proxy);
    let mut ask = |host: &str| {
        let request = Request::get(format!("http://{host}/")).body(()).unwrap();
        connection.ask(request).0.status.as_u16()
    };
    assert_eq!([ask("a.example"), ask("b.example"), ask("A.example:80")], [200, 200, 429]);
    assert_eq!(ask("a.example"), 429);
}
