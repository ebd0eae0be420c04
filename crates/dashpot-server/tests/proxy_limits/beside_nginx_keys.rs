//! Each line about keys, places and connections of docs/from-nginx.md beside nginx itself: the same requests, one after
//! another, and the same statuses.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use crate::backend::{Backend, answer};
use crate::caller::{Caller, PATIENCE, get};
use crate::nginx::nginx;
use crate::proxy::Proxy;

/// From where, which path, and what else is said.
type Ask = (u8, &'static str, &'static str);

fn statuses(to: SocketAddr, asks: &[Ask]) -> Vec<u16> {
    let ask = |(from, path, line): &Ask| {
        let lines: &[&str] = if line.is_empty() { &[] } else { &[line] };
        Caller::from(*from, to).ask("GET", path, lines, "").status
    };
    asks.iter().map(ask).collect()
}

/// Both deny the same. Thirty a minute are one in two seconds, so time adds nothing meanwhile.
#[track_caller]
fn assert_same(http: &str, server: &str, rules: &str, asks: &[Ask], expected: &[u16]) {
    let backend = Backend::start();
    let nginx = nginx(&backend, http, server);
    let proxy = Proxy::by(&backend, rules);
    assert_eq!(statuses(nginx.address(), asks), expected, "nginx");
    assert_eq!(statuses(proxy.address, asks), expected, "dashpot");
}

fn zone(key: &str) -> String {
    format!("limit_req_zone {key} zone=a:10m rate=30r/m;\nlimit_req_status 429;")
}

const ALL: &str = "location / { limit_req zone=a burst=1 nodelay; PASS }";

/// Two at once, thirty a minute, counted by these.
fn rule(by: &str) -> String {
    format!("[[rule]]\nname = 'a'\n{by}\nlimits = ['30/min burst 2']\n")
}

#[test]
fn by_address() {
    let asks =
        [(1, "/", ""), (1, "/x", ""), (1, "/", ""), (2, "/", ""), (2, "/", ""), (2, "/", "")];
    let expected = [200, 200, 429, 200, 200, 429];
    assert_same(&zone("$binary_remote_addr"), ALL, &rule("by = ['ip']"), &asks, &expected);
}

#[test]
fn one_for_all() {
    let asks = [(1, "/", ""), (2, "/", ""), (3, "/", ""), (1, "/", "")];
    assert_same(&zone("$server_name"), ALL, &rule(""), &asks, &[200, 200, 429, 429]);
}

#[test]
fn by_a_header_and_those_without_it_are_not_limited() {
    let (a, b) = ("x-api-key: a", "x-api-key: b");
    let asks = [(1, "/", a), (2, "/", a), (1, "/", a), (1, "/", b), (1, "/", ""), (1, "/", "")];
    let more = [(1, "/", ""), (1, "/", ""), (1, "/", b), (1, "/", b)];
    let asks = [&asks[..], &more].concat();
    let expected = [200, 200, 429, 200, 200, 200, 200, 200, 200, 429];
    let rules = rule("by = ['header:x-api-key']\nabsent = 'skip'");
    assert_same(&zone("$http_x_api_key"), ALL, &rules, &asks, &expected);
}

#[test]
fn by_address_and_path() {
    let asks = [(1, "/a", ""), (1, "/a", ""), (1, "/a", ""), (1, "/b", ""), (2, "/a", "")];
    let more = [(1, "/a?x=1", ""), (1, "/b", ""), (1, "/b", "")];
    let asks = [&asks[..], &more].concat();
    let expected = [200, 200, 429, 200, 200, 429, 200, 429];
    let http = zone("\"$binary_remote_addr$uri\"");
    assert_same(&http, ALL, &rule("by = ['ip', 'path']"), &asks, &expected);
}

#[test]
fn by_place() {
    let server = "location /login { limit_req zone=a burst=1 nodelay; PASS }\nlocation / { PASS }";
    let asks = [(1, "/login", ""), (1, "/", ""), (1, "/login", ""), (1, "/login", "")];
    let more = [(1, "/other", ""), (1, "/login?x=1", ""), (2, "/login", ""), (1, "/login/b", "")];
    let asks = [&asks[..], &more].concat();
    let expected = [200, 200, 200, 429, 200, 429, 200, 429];
    let rules = rule("by = ['ip']\nmatch = { path = '/login/*' }");
    assert_same(&zone("$binary_remote_addr"), server, &rules, &asks, &expected);
    let server = server.replace("/login {", "= /login {");
    let rules = rule("by = ['ip']\nmatch = { path = '/login' }");
    let expected = [200, 200, 200, 429, 200, 429, 200, 200];
    assert_same(&zone("$binary_remote_addr"), &server, &rules, &asks, &expected);
}

#[test]
fn another_status() {
    let http = zone("$binary_remote_addr").replace("429", "503");
    let rules = rule("by = ['ip']\non_deny = { status = 503 }");
    let asks = [(1, "/", ""), (1, "/", ""), (1, "/", "")];
    assert_same(&http, ALL, &rules, &asks, &[200, 200, 503]);
}

#[test]
fn some_are_not_limited() {
    let geo = "geo $limit { default 1; 127.0.0.2 0; }\nmap $limit $key { 0 \"\"; 1 $binary_remote_addr; }\n";
    let http = geo.to_owned() + &zone("$key");
    let asks = [(1, "/", ""), (1, "/", ""), (1, "/", ""), (2, "/", ""), (2, "/", ""), (2, "/", "")];
    let expected = [200, 200, 429, 200, 200, 200];
    let rules = "[allow]\nip = ['127.0.0.2']\n".to_owned() + &rule("by = ['ip']");
    assert_same(&http, ALL, &rules, &asks, &expected);
}

#[test]
fn through_proxies_that_are_trusted() {
    let real = "set_real_ip_from 127.0.0.1;\nset_real_ip_from 10.0.0.0/8;\n\
                real_ip_header X-Forwarded-For;\nreal_ip_recursive on;\n";
    let rules = "[identity]\ntrusted_proxies = ['127.0.0.1/32', '10.0.0.0/8']\n".to_owned()
        + &rule("by = ['ip']");
    let asks = [
        (1, "/", "x-forwarded-for: 203.0.113.7"),
        (1, "/", "x-forwarded-for: 1.1.1.1, 203.0.113.7"),
        (1, "/", "x-forwarded-for: 2.2.2.2, 203.0.113.7, 10.1.2.3"),
        (1, "/", "x-forwarded-for: 203.0.113.8"),
        // A stranger says what it likes.
        (2, "/", "x-forwarded-for: 203.0.113.9"),
        (2, "/", "x-forwarded-for: 203.0.113.10"),
        (2, "/", "x-forwarded-for: 203.0.113.11"),
    ];
    let expected = [200, 200, 429, 200, 200, 200, 429];
    assert_same(&(real.to_owned() + &zone("$binary_remote_addr")), ALL, &rules, &asks, &expected);
}

/// A backend that keeps whoever comes until it is told to let them go.
fn keeping() -> (Backend, Arc<(Mutex<bool>, Condvar)>) {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let kept = Arc::clone(&gate);
    let backend = Backend::answering(move |_, stream| {
        let (open, changed) = &*kept;
        let open = open.lock().unwrap();
        drop(changed.wait_timeout_while(open, PATIENCE, |open| !*open).unwrap());
        stream.write_all(&answer("200 OK", "at last"))
    });
    (backend, gate)
}

#[test]
fn so_many_at_once() {
    let http = "limit_conn_zone $binary_remote_addr zone=c:10m;\nlimit_conn_status 429;";
    let rules = "[[rule]]\nname = 'c'\nby = ['ip']\nlimits = ['10 concurrent']\n";
    let (one, other) = (keeping(), keeping());
    let nginx = nginx(&one.0, http, "location / { limit_conn c 10; PASS }");
    let proxy = Proxy::by(&other.0, rules);
    for (to, (backend, gate)) in [(nginx.address(), &one), (proxy.address, &other)] {
        let mut callers: Vec<_> = (0..40).map(|_| Caller::to(to)).collect();
        for caller in &mut callers[..10] {
            caller.send(get("/"));
        }
        backend.await_count(10);
        for caller in &mut callers[10..] {
            assert_eq!(caller.get("/").status, 429);
        }
        let mut elsewhere = Caller::from(2, to);
        elsewhere.send(get("/"));
        backend.await_count(11);
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        for caller in callers[..10].iter_mut().chain([&mut elsewhere]) {
            assert_eq!(caller.answer().text(), "at last");
        }
        for caller in &mut callers[10..] {
            assert_eq!(caller.get("/").status, 200);
        }
        assert_eq!(backend.count(), 41);
    }
}
