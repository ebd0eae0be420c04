//! What the metrics of the proxy count.

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use dashpot_testkit::process::{free_port, until};
use socket2::{Domain, Socket, Type};

use crate::backend::{Backend, answer};
use crate::caller::PATIENCE;
use crate::home::Home;
use crate::proxy::{PORTS, Proxy};

fn answers(proxy: &Proxy, class: &str) -> f64 {
    proxy.metric(&format!("dashpot_http_answers_total{{door=\"proxy\",status=\"{class}\"}}"))
}

fn failures(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric(&format!("dashpot_upstream_failures_total{{reason=\"{reason}\"}}"))
}

/// In front of whatever is at this address.
fn in_front_of(address: &str, more: &[&str]) -> Proxy {
    let url = format!("http://{address}");
    Proxy::run(Home::new(), &[&["proxy", "--upstream", &url], &PORTS[..], more].concat(), |_| {})
}

#[test]
fn answers_are_counted_the_backends_and_its_own() {
    let backend = Backend::answering(|seen, stream| {
        let status = seen.path().trim_start_matches('/');
        stream.write_all(&answer(&format!("{status} So"), "so"))
    });
    let rules = "[[rule]]\nname = 'few'\nmatch = { path = '/200' }\nlimits = ['4/day']\n";
    let proxy = Proxy::by(&backend, rules);
    proxy.statuses("/200", &[], 7);
    proxy.statuses("/302", &[], 2);
    proxy.statuses("/404", &[], 3);
    proxy.statuses("/500", &[], 1);
    assert_eq!(answers(&proxy, "2xx"), 4.0);
    assert_eq!(answers(&proxy, "3xx"), 2.0);
    assert_eq!(answers(&proxy, "4xx"), 3.0 + 3.0, "the backend's, and three denials");
    assert_eq!(answers(&proxy, "5xx"), 1.0);
    assert_eq!(proxy.metric(r#"dashpot_http_seconds_count{door="proxy"}"#), 13.0);
    assert_eq!(proxy.metric(r#"dashpot_rule_allowed_total{rule="few"}"#), 4.0);
    assert_eq!(proxy.metric(r#"dashpot_rule_denied_total{rule="few"}"#), 3.0);
    // Denied callers need no connection to the backend, and those that follow each other share one.
    let made = proxy.metric("dashpot_upstream_connections_total");
    assert!((1.0..=4.0).contains(&made), "{made}");
    assert_eq!(proxy.metric("dashpot_upstream_retries_total"), 0.0);
}

#[test]
fn every_metric_of_the_page_is_there() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &[]);
    proxy.get("/");
    let told = proxy.admin_get("/metrics").text();
    for name in [
        "dashpot_http_answers",
        "dashpot_http_seconds",
        "dashpot_upstream_connections",
        "dashpot_upstream_failures",
        "dashpot_upstream_retries",
        "dashpot_tunnels",
        "dashpot_queued",
        "dashpot_access_log_dropped",
    ] {
        assert!(told.contains(&format!("# TYPE {name} ")), "{name}: {told}");
    }
}

#[test]
fn how_long_it_took_until_the_answer_began_is_told() {
    let backend = Backend::answering(|_, stream| {
        std::thread::sleep(Duration::from_millis(300));
        stream.write_all(&answer("200 OK", "late"))
    });
    let proxy = Proxy::start(&backend, &[]);
    proxy.get("/");
    let sum = proxy.metric(r#"dashpot_http_seconds_sum{door="proxy"}"#);
    assert!((0.3..10.0).contains(&sum), "{sum}");
}

#[test]
fn a_backend_that_is_not_there() {
    let proxy = in_front_of(&format!("127.0.0.1:{}", free_port()), &[]);
    let answer = proxy.get("/");
    assert_eq!(answer.status, 502);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.json()["status"], 502);
    assert_eq!((failures(&proxy, "connect"), answers(&proxy, "5xx")), (1.0, 1.0));
}

/// One that has no time to accept: Linux lets nobody in when its line is full.
#[test]
fn a_backend_that_does_not_accept() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let brief = Duration::from_millis(100);
    let mut waiting = Vec::new();
    while let Ok(stream) = std::net::TcpStream::connect_timeout(&address, brief) {
        waiting.push(stream);
    }
    let proxy = in_front_of(&address.to_string(), &["--connect-timeout", "300ms"]);
    assert_eq!(proxy.get("/").status, 504);
    assert_eq!(failures(&proxy, "connect_timeout"), 1.0);
    assert_eq!(failures(&proxy, "connect"), 0.0);
}

#[test]
fn a_backend_that_does_not_answer() {
    let backend = Backend::answering(|_, stream| {
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let proxy = Proxy::start(&backend, &["--response-timeout", "300ms"]);
    assert_eq!(proxy.get("/").status, 504);
    assert_eq!(failures(&proxy, "response_timeout"), 1.0);
    assert_eq!(failures(&proxy, "broken"), 0.0);
}

#[test]
fn a_backend_that_breaks_off() {
    let backend = Backend::answering(|seen, stream| {
        if seen.path() == "/nonsense" {
            stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")?;
        }
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let proxy = Proxy::start(&backend, &[]);
    // With a body it is not sent again, whatever happens.
    assert_eq!(proxy.caller().ask("POST", "/closes", &[], "once").status, 502);
    assert_eq!(failures(&proxy, "broken"), 1.0);
    assert_eq!(proxy.caller().ask("POST", "/nonsense", &[], "once").status, 502);
    assert_eq!(failures(&proxy, "broken"), 2.0);
    assert_eq!(backend.count(), 2);
}

/// A connection that was kept turns out to be closed: once more, over a new one.
#[test]
fn what_is_sent_again_is_told() {
    let served = std::sync::atomic::AtomicUsize::new(0);
    let backend = Backend::answering(move |_, stream| {
        // The second request on a connection is not answered any more, but the third is again.
        match served.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            1 => Err(std::io::ErrorKind::ConnectionAborted.into()),
            _ => stream.write_all(&answer("200 OK", "hello")),
        }
    });
    let proxy = Proxy::start(&backend, &["--threads", "1"]);
    let mut caller = proxy.caller();
    assert_eq!(caller.get("/1").status, 200);
    assert_eq!(caller.get("/2").status, 200);
    assert_eq!(backend.paths(), ["/1", "/2", "/2"]);
    assert_eq!(proxy.metric("dashpot_upstream_retries_total"), 1.0);
    assert_eq!(proxy.metric("dashpot_upstream_connections_total"), 2.0);
}

#[test]
fn connections_of_callers_are_counted() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &[]);
    let mut callers: Vec<_> = (0..5).map(|_| proxy.caller()).collect();
    for caller in &mut callers {
        caller.get("/");
    }
    assert!(proxy.metric("dashpot_open_connections") >= 5.0);
    drop(callers);
    until("them to be gone", PATIENCE, || {
        // The one that asks is one, too.
        (proxy.metric("dashpot_open_connections") <= 1.0).then_some(())
    });
    assert!(proxy.metric("dashpot_connections_total") >= 5.0);
}
