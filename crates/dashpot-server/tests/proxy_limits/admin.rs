//! The admin port: the service's API beside the proxy, and not at it.

use std::net::TcpStream;
use std::time::Duration;

use dashpot_testkit::process::until;
use serde_json::json;

use crate::backend::Backend;
use crate::caller::{Caller, PATIENCE, get};
use crate::home::Home;
use crate::pace::{await_sum, send};
use crate::proxy::{PORTS, Proxy};

const EACH: &str = "[[rule]]\nname = 'each'\nby = ['ip']\nlimits = ['3/day']\n";
/// What only the admin port answers.
const OWN: [&str; 8] = [
    "/metrics",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/v1/rules",
    "/v1/keys/top",
    "/v1/health",
    "/v1/check",
];

#[test]
fn its_port_is_not_the_proxys() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &[]);
    assert_ne!(proxy.address, proxy.admin());
    for path in OWN {
        assert_eq!(proxy.get(path).text(), "hello", "{path} is the backend's");
    }
    assert_eq!(proxy.caller().ask("POST", "/v1/check", &[], "{}").text(), "hello");
    assert_eq!(proxy.get("/v1/forward-auth/").text(), "hello");
    let paths = backend.paths();
    assert_eq!(paths.len(), OWN.len() + 2);
    for path in &OWN[..7] {
        let answer = proxy.admin_get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_ne!(answer.text(), "hello", "{path}");
    }
    assert_eq!(proxy.admin_get("/books").status, 404);
    assert_eq!(backend.count(), OWN.len() + 2, "what is asked there is not passed on");
}

#[test]
fn it_may_be_off() {
    let backend = Backend::start();
    let url = backend.url();
    let flags = ["proxy", "--upstream", &url, "--listen", "127.0.0.1:0", "--admin-listen", "off"];
    let proxy = Proxy::run(Home::new(), &flags, |_| {});
    assert!(!proxy.has_admin());
    assert!(!proxy.stdout().contains("listening on"), "{}", proxy.stdout());
    assert_eq!(proxy.get("/metrics").text(), "hello");
}

#[test]
fn a_check_made_there_counts_by_the_same_rules() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, EACH);
    let asked = r#"{"request":{"path":"/","ip":"127.0.0.1"}}"#;
    assert_eq!(proxy.admin_post("/v1/check", asked).status, 200);
    assert_eq!(proxy.statuses("/", &[], 3), [200, 200, 429]);
    assert_eq!(proxy.admin_post("/v1/check", asked).status, 429);
}

#[test]
fn keys_are_looked_at_reset_and_blocked() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, EACH);
    let of = json!({"request": {"path": "/", "ip": "127.0.0.1"}});
    let key = |what: &str, body: &serde_json::Value| {
        let answer = proxy.admin_post(&format!("/v1/keys/{what}"), &body.to_string());
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
        answer.json()["policies"][0]["remaining"].as_u64().unwrap()
    };
    assert_eq!(proxy.statuses("/", &[], 5), [200, 200, 200, 429, 429]);
    assert_eq!(key("peek", &of), 0);
    assert_eq!(key("reset", &of), 3);
    assert_eq!(proxy.statuses("/", &[], 1), [200]);
    let mut block = of.clone();
    block["for"] = json!("1h");
    key("block", &block);
    let denied = proxy.get("/");
    assert_eq!(denied.status, 429);
    assert!(denied.retry_after() > 3500, "{denied:?}");
    assert_eq!(proxy.caller_from(2).get("/").status, 200);
    assert_eq!(key("unblock", &of), 2);
    assert_eq!(proxy.get("/").status, 200);
    // As the list tells it.
    let top = proxy.admin_get("/v1/keys/top").json();
    let told = &top["keys"][0];
    assert_eq!((&told["rule"], &told["key"]), (&json!("each"), &json!(["ip=127.0.0.1"])), "{top}");
    assert_eq!(told["denied"], 3, "{top}");
    assert_eq!(key("reset", &json!({"rule": told["rule"], "id": told["id"]})), 3);
}

#[test]
fn the_command_asks_it() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, EACH);
    proxy.statuses("/", &[], 8);
    let url = proxy.admin_url();
    let home = Home::new();
    let run = |arguments: &[&str]| {
        let output = home.run(&[arguments, &["--server", &url]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let (code, told) = run(&["key", "top"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("each") && told.contains("127.0.0.1") && told.contains('5'), "{told}");
    let (code, told) = run(&["rules", "list"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("each") && told.contains("3/day"), "{told}");
    let (_, told) = run(&["rules", "list", "--json"]);
    let rules: serde_json::Value = serde_json::from_str(&told).unwrap();
    let each = &rules["rules"][0];
    assert_eq!((&each["allowed"], &each["denied"]), (&json!(3), &json!(5)), "{rules}");

    // Keys that are made up on the spot.
    let mallory = ["100/min", "--key", "mallory"];
    for (what, more) in
        [("peek", &[][..]), ("block", &["--for", "10min"]), ("unblock", &[]), ("reset", &[])]
    {
        let (code, told) = run(&[&["key", what], &mallory[..], more].concat());
        assert_eq!(code, Some(0), "{what}: {told}");
    }
    run(&[&["key", "block"], &mallory[..], &["--for", "10min"]].concat());
    let (code, told) = run(&["check", "100/min", "--key", "mallory"]);
    assert_eq!(code, Some(1), "it is blocked: {told}");
    let (code, told) = run(&["rules", "reload"]);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn who_is_elsewhere_needs_a_token() {
    let backend = Backend::start();
    let proxy = Proxy::with(&backend, EACH, &["--admin-token", "correct-horse"]);
    let ask =
        |path: &str, lines: &[&str]| Caller::to(proxy.admin()).ask("GET", path, lines, "").status;
    assert_eq!(ask("/v1/rules", &[]), 401);
    assert_eq!(ask("/v1/rules", &["authorization: Bearer correct-horse"]), 200);
    assert_eq!(ask("/metrics", &[]), 200);
    // Without one, what shows that it was forwarded is not from this machine.
    let proxy = Proxy::by(&backend, EACH);
    let status =
        Caller::to(proxy.admin()).ask("GET", "/v1/rules", &["x-forwarded-for: 1.2.3.4"], "");
    assert_eq!(status.status, 403);
}

#[test]
fn stopping_it_says_so_and_goes_on_for_a_while() {
    let backend = Backend::start();
    let url = backend.url();
    let flags = [&["proxy", "--upstream", &url, "--drain-delay", "2s"], &PORTS[..]].concat();
    let mut proxy = Proxy::run(Home::new(), &flags, |_| {});
    assert_eq!(proxy.admin_get("/readyz").status, 200);
    proxy.signal("TERM");
    until("/readyz to say so", PATIENCE, || {
        (proxy.admin_get("/readyz").status == 503).then_some(())
    });
    assert_eq!(proxy.get("/").status, 200, "for those who come");
    assert_eq!(proxy.admin_get("/healthz").status, 200);
    until("the socket to close", PATIENCE, || TcpStream::connect(proxy.address).err());
    assert_eq!(proxy.end().code(), Some(0));
}

#[test]
fn who_waits_in_a_queue_when_it_stops_is_served() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";
    let mut proxy = Proxy::with(&backend, rules, &["--drain-delay", "0s"]);
    let mut callers: Vec<_> = (0..4).map(|_| proxy.caller()).collect();
    for caller in &mut callers {
        caller.send(get("/"));
    }
    await_sum(&[&proxy], &backend, 4);
    proxy.signal("TERM");
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(proxy.end().code(), Some(0));
    assert_eq!(backend.count(), 4);
}

/// A limit of requests in flight that nobody gives back does not keep it for ever.
#[test]
fn who_never_ends_is_cut_off() {
    let backend = Backend::answering(|_, stream| {
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let flags = ["--drain-delay", "0s", "--drain-timeout", "500ms"];
    let mut proxy = Proxy::start(&backend, &flags);
    let _waiting = send(&proxy, "/");
    backend.await_count(1);
    let begun = std::time::Instant::now();
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(0));
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(450), "it was not waited for: {took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
}
