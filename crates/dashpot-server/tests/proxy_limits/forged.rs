//! What callers say of themselves buys them nothing.

use crate::backend::Backend;
use crate::proxy::Proxy;

const EACH: &str = "[[rule]]\nname = 'each'\nby = ['ip']\nlimits = ['3/day']\n";

/// All the ways to say who asked.
fn sayings(address: &str) -> Vec<String> {
    vec![
        format!("X-Forwarded-For: {address}"),
        format!("x-forwarded-for: {address}, 127.0.0.1"),
        format!("X-Real-IP: {address}"),
        format!("Forwarded: for={address}"),
        format!("Forwarded: for=\"{address}:80\";proto=https, for=127.0.0.1"),
        format!("X_Forwarded_For: {address}"),
        format!("X_Real_IP: {address}"),
        format!("X-Client-IP: {address}"),
        format!("CF-Connecting-IP: {address}"),
        format!("True-Client-IP: {address}"),
        format!("X-Forwarded: {address}"),
        format!("X-Original-Forwarded-For: {address}"),
        format!("X-Forwarded-For: {address}\r\nX-Forwarded-For: 10.0.0.1"),
    ]
}

/// Whether none of the sayings passes once the limit is used up by one who says nothing.
fn assert_none_helps(proxy: &Proxy, backend: &Backend, last: u8) {
    let mut caller = proxy.caller_from(last);
    for _ in 0..3 {
        assert_eq!(caller.get("/").status, 200);
    }
    backend.forget();
    for nth in 0..3 {
        for line in sayings(&format!("203.0.113.{nth}")) {
            assert_eq!(caller.ask("GET", "/", &[&line], "").status, 429, "{line}");
        }
    }
    assert_eq!(backend.count(), 0);
}

#[test]
fn nobody_is_trusted_if_nobody_is_named() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, EACH);
    assert_none_helps(&proxy, &backend, 1);
}

#[test]
fn strangers_are_not_trusted_if_somebody_else_is() {
    let backend = Backend::start();
    for header in ["x-forwarded-for", "forwarded", "x-client-ip"] {
        let identity = format!(
            "[identity]\ntrusted_proxies = ['127.0.0.1/32']\nclient_ip_header = '{header}'\n"
        );
        let proxy = Proxy::by(&backend, &(identity + EACH));
        assert_none_helps(&proxy, &backend, 2);
    }
}

#[test]
fn one_line_is_no_more_credulous() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "3/day", "--by", "ip"]);
    assert_none_helps(&proxy, &backend, 1);
}

/// The last address that no trusted proxy wrote is the caller; what is before it, anybody may have written.
#[test]
fn a_trusted_proxy_is_believed_of_whom_it_saw() {
    let backend = Backend::start();
    let identity = "[identity]\ntrusted_proxies = ['127.0.0.1/32', '10.0.0.0/8']\n";
    let proxy = Proxy::by(&backend, &(identity.to_owned() + EACH));
    let ask = |told: &str| {
        let line = format!("x-forwarded-for: {told}");
        proxy.caller().ask("GET", "/", &[&line], "").status
    };
    for forged in ["203.0.113.7", "1.1.1.1, 203.0.113.7", "nonsense, 203.0.113.7, 10.1.2.3"] {
        assert_eq!(ask(forged), 200, "{forged}");
    }
    for forged in ["203.0.113.7", "2.2.2.2, 203.0.113.7", "3.3.3.3, 203.0.113.7, 10.0.0.9"] {
        assert_eq!(ask(forged), 429, "{forged}");
    }
    assert_eq!(ask("203.0.113.7, 203.0.113.8"), 200, "somebody else");
    // Whom the rules count is whom the backend hears of.
    let seen = backend.seen().pop().unwrap();
    assert_eq!(seen.header("x-real-ip"), Some("203.0.113.8"));
    let others = ["x-real-ip: 203.0.113.99", "x-forwarded-for: 203.0.113.7"];
    assert_eq!(proxy.caller().ask("GET", "/", &others, "").status, 429);
}

#[test]
fn an_address_of_one_network_of_ipv6_is_one_caller() {
    let backend = Backend::start();
    let identity = "[identity]\ntrusted_proxies = ['127.0.0.1/32']\n";
    let proxy = Proxy::by(&backend, &(identity.to_owned() + EACH));
    let mut passed = 0;
    for nth in 0..10 {
        let line = format!("x-forwarded-for: 2001:db8:0:1:{nth:x}::{nth:x}");
        passed += usize::from(proxy.caller().ask("GET", "/", &[&line], "").status == 200);
    }
    assert_eq!(passed, 3);
    let line = "x-forwarded-for: 2001:db8:0:2::1";
    assert_eq!(proxy.caller().ask("GET", "/", &[line], "").status, 200);
}

/// With so many proxies in front, the last entries are theirs, whoever connects.
#[test]
fn so_many_hops_are_counted_from_the_end() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &format!("[identity]\nhops = 1\n{EACH}"));
    let ask = |told: &str| {
        let line = format!("x-forwarded-for: {told}");
        proxy.caller().ask("GET", "/", &[&line], "").status
    };
    for nth in 0..5 {
        let status = ask(&format!("9.9.9.{nth}, 203.0.113.7"));
        assert_eq!(status, if nth < 3 { 200 } else { 429 }, "{nth}");
    }
    assert_eq!(ask("203.0.113.7, 203.0.113.8"), 200);
}
