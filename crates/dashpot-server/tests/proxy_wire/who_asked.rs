//! Who asked, as the backend is told of it, if nobody in between is trusted.

use std::net::SocketAddr;

use crate::scene::{OK, Scene, get, with};
use crate::wire::Wire;

const FORGED: &str = "X-Forwarded-For: 203.0.113.7, 203.0.113.8\r\nx-forwarded-for: 203.0.113.9\r\n\
    X-Forwarded-Host: other.example\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 203.0.113.7\r\n\
    Forwarded: for=203.0.113.7;host=other.example;proto=https\r\nforwarded: for=203.0.113.8\r\n";

#[test]
fn it_is_whoever_connected_and_nobody_else() {
    let scene = Scene::start(&[]);
    for lines in ["", FORGED] {
        let seen = scene.seen(with("GET", "/", lines, ""));
        assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
        assert_eq!(seen.one("x-forwarded-host"), "example.com");
        assert_eq!(seen.one("x-forwarded-proto"), "http");
        assert_eq!(seen.one("x-real-ip"), "127.0.0.1");
        assert!(!seen.has("forwarded"), "{seen:?}");
    }
}

/// Every address of this machine, and not only its first.
#[test]
fn callers_are_told_apart() {
    let scene = Scene::start(&[]);
    for from in ["127.0.0.1", "127.0.0.77"] {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let address: SocketAddr = format!("{from}:0").parse().unwrap();
        socket.bind(&address.into()).unwrap();
        socket.connect(&scene.address.into()).unwrap();
        let mut caller = Wire::of(socket.into());
        caller.send(with("GET", "/", FORGED, ""));
        let mut backend = scene.accept();
        let seen = backend.request();
        assert_eq!(seen.one("x-forwarded-for"), from);
        assert_eq!(seen.one("x-real-ip"), from);
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200);
    }
}

/// Some backends take `_` for `-`, and would believe them.
#[test]
fn names_with_underscores_are_removed() {
    let scene = Scene::start(&[]);
    let names = [
        "X_Forwarded_For",
        "x-forwarded_for",
        "x_forwarded-for",
        "X_FORWARDED_HOST",
        "x_forwarded_proto",
        "x-forwarded_proto",
        "X_Real_IP",
        "x-real_ip",
    ];
    for name in names {
        let seen = scene.seen(with("GET", "/", &format!("{name}: 203.0.113.7\r\n"), ""));
        assert!(!seen.has(&name.to_ascii_lowercase()), "{name}: {seen:?}");
        let said = seen.fields.iter().any(|(_, value)| value.contains("203.0.113.7"));
        assert!(!said, "{name}: {seen:?}");
    }
}

/// Where the rules say that proxies say it, a caller who is none is not to say it.
#[test]
fn the_header_that_the_rules_name_is_removed() {
    let rules =
        "[identity]\ntrusted_proxies = ['10.0.0.0/8']\nclient_ip_header = 'cf-connecting-ip'\n";
    let scene = Scene::with_rules(rules, &[]);
    let lines = "CF-Connecting-IP: 203.0.113.7\r\ncf_connecting_ip: 203.0.113.7\r\n";
    let seen = scene.seen(with("GET", "/", &format!("{FORGED}{lines}"), ""));
    assert!(!seen.has("cf-connecting-ip") && !seen.has("cf_connecting_ip"), "{seen:?}");
    assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
    assert_eq!(seen.one("x-forwarded-host"), "example.com");
    assert_eq!(seen.one("x-forwarded-proto"), "http");
    assert_eq!(seen.one("x-real-ip"), "127.0.0.1");
    assert!(!seen.has("forwarded"), "{seen:?}");
}

#[test]
fn ipv6_callers_are_told_as_well() {
    let scene = Scene::start(&["--listen", "[::1]:0"]);
    assert!(scene.address.is_ipv6(), "{}", scene.address);
    for lines in ["", FORGED] {
        let seen = scene.seen(with("GET", "/", lines, ""));
        assert_eq!(seen.one("x-forwarded-for"), "::1");
        assert_eq!(seen.one("x-real-ip"), "::1");
        assert!(!seen.has("forwarded"), "{seen:?}");
    }
}

/// An address of version 4 is one of version 4, through whatever socket it comes.
#[test]
fn a_mapped_address_is_told_as_what_it_is() {
    let scene = Scene::start(&["--listen", "[::ffff:127.0.0.1]:0"]);
    let mut caller = Wire::to(SocketAddr::from(([127, 0, 0, 1], scene.address.port())));
    caller.send(get("/"));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
    assert_eq!(seen.one("x-real-ip"), "127.0.0.1");
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}
