//! Who asked, if those in between are trusted: what they say stays, and is added to.

use crate::message::Message;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{OK, Scene, with};

const TRUSTED: &str = "[identity]\ntrusted_proxies = ['127.0.0.0/8', '10.0.0.0/8']\n";

fn seen(scene: &Scene, lines: &str) -> Message {
    scene.seen(with("GET", "/", lines, ""))
}

/// Of several lines, one list.
fn list(seen: &Message, name: &str) -> String {
    seen.all(name).join(", ")
}

#[test]
fn a_trusted_proxy_is_added_to_the_list() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    for (lines, expected) in [
        ("X-Forwarded-For: 203.0.113.7\r\n", "203.0.113.7, 127.0.0.1"),
        ("x-forwarded-for: 198.51.100.1, 203.0.113.7\r\n", "198.51.100.1, 203.0.113.7, 127.0.0.1"),
        (
            "x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: 203.0.113.7, 10.0.0.1\r\n",
            "198.51.100.1, 203.0.113.7, 10.0.0.1, 127.0.0.1",
        ),
        ("x-forwarded-for: 2001:db8::7\r\n", "2001:db8::7, 127.0.0.1"),
        ("", "127.0.0.1"),
    ] {
        let seen = seen(&scene, lines);
        assert_eq!(list(&seen, "x-forwarded-for"), expected, "{lines}");
        assert!(!seen.has("forwarded"), "nobody spoke of it: {seen:?}");
    }
}

/// Whoever stands in front of the last one who is trusted.
#[test]
fn the_real_address_is_the_one_that_is_counted() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    for (lines, expected) in [
        ("x-forwarded-for: 203.0.113.7\r\n", "203.0.113.7"),
        // Anybody can put something in front.
        ("x-forwarded-for: 198.51.100.1, 203.0.113.7\r\n", "203.0.113.7"),
        ("x-forwarded-for: 198.51.100.1, 203.0.113.7, 10.0.0.1\r\n", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7\r\nx-real-ip: 198.51.100.1\r\n", "203.0.113.7"),
        ("", "127.0.0.1"),
    ] {
        assert_eq!(seen(&scene, lines).one("x-real-ip"), expected, "{lines}");
    }
}

#[test]
fn what_it_says_of_host_and_protocol_stays() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    let lines = "x-forwarded-host: shop.example:8443\r\nx-forwarded-proto: https\r\n";
    let said = seen(&scene, lines);
    assert_eq!(said.one("x-forwarded-host"), "shop.example:8443");
    assert_eq!(said.one("x-forwarded-proto"), "https");
    assert_eq!(said.one("host"), "example.com");
    let silent = seen(&scene, "");
    assert_eq!(silent.one("x-forwarded-host"), "example.com");
    assert_eq!(silent.one("x-forwarded-proto"), "http");
}

#[test]
fn the_newer_header_gets_one_more_entry() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    let before = r#"for=198.51.100.1, for="[2001:db8::7]:4711";proto=https"#;
    for lines in [
        format!("Forwarded: {before}\r\n"),
        "forwarded: for=198.51.100.1\r\nforwarded: for=\"[2001:db8::7]:4711\";proto=https\r\n"
            .to_owned(),
    ] {
        let seen = seen(&scene, &lines);
        let list = list(&seen, "forwarded");
        let added = list.strip_prefix(before).unwrap_or_else(|| panic!("{list}"));
        let added = added.strip_prefix(',').unwrap_or_else(|| panic!("{list}")).trim();
        assert!(!added.contains(','), "one entry: {list}");
        let pairs: Vec<_> = added.split(';').map(str::trim).collect();
        assert!(pairs.iter().any(|pair| pair.eq_ignore_ascii_case("for=127.0.0.1")), "{list}");
    }
}

/// An address of version 6 is quoted there.
#[test]
fn an_ipv6_proxy_is_added_as_well() {
    let rules = "[identity]\ntrusted_proxies = ['::1/128']\n";
    let scene = Scene::with_rules(rules, &["--listen", "[::1]:0"]);
    let lines = "x-forwarded-for: 203.0.113.7\r\nforwarded: for=203.0.113.7\r\n";
    let seen = seen(&scene, lines);
    assert_eq!(list(&seen, "x-forwarded-for"), "203.0.113.7, ::1");
    assert_eq!(seen.one("x-real-ip"), "203.0.113.7");
    let list = list(&seen, "forwarded");
    assert!(list.starts_with("for=203.0.113.7,") && list.contains(r#"for="[::1]""#), "{list}");
}

#[test]
fn names_with_underscores_are_removed_nevertheless() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    let lines = "x_forwarded_for: 198.51.100.1\r\nx_real_ip: 198.51.100.1\r\n\
        x_forwarded_proto: 198.51.100.1\r\nx-forwarded-for: 203.0.113.7\r\n";
    let seen = seen(&scene, lines);
    let said = seen.fields.iter().any(|(_, value)| value.contains("198.51.100.1"));
    assert!(!said, "{seen:?}");
    assert_eq!(list(&seen, "x-forwarded-for"), "203.0.113.7, 127.0.0.1");
}

/// Nor is there another way to write the header that the rules name.
#[test]
fn the_named_header_has_no_second_spelling() {
    let named = format!("{TRUSTED}client_ip_header = 'cf-connecting-ip'\n");
    let scene = Scene::with_rules(&named, &[]);
    let lines = "cf-connecting-ip: 203.0.113.7\r\ncf_connecting_ip: 198.51.100.1\r\n";
    let seen = seen(&scene, lines);
    assert_eq!(seen.one("cf-connecting-ip"), "203.0.113.7");
    assert!(!seen.has("cf_connecting_ip"), "{seen:?}");
}

/// So many are always in front, whoever they are.
#[test]
fn proxies_may_be_counted_instead() {
    let lines = "x-forwarded-for: 198.51.100.1, 203.0.113.7, 10.0.0.1\r\n";
    for (hops, expected) in [(1, "10.0.0.1"), (2, "203.0.113.7"), (3, "198.51.100.1")] {
        let scene = Scene::with_rules(&format!("[identity]\nhops = {hops}\n"), &[]);
        let seen = seen(&scene, &format!("{lines}x-forwarded-proto: https\r\n"));
        assert_eq!(seen.one("x-real-ip"), expected, "{hops} hops");
        let all = "198.51.100.1, 203.0.113.7, 10.0.0.1, 127.0.0.1";
        assert_eq!(list(&seen, "x-forwarded-for"), all, "{hops} hops");
        assert_eq!(seen.one("x-forwarded-proto"), "https", "{hops} hops");
    }
}

#[test]
fn the_header_that_the_rules_name_is_believed() {
    let rules = format!("{TRUSTED}client_ip_header = 'cf-connecting-ip'\n");
    let scene = Scene::with_rules(&rules, &[]);
    let lines = "cf-connecting-ip: 203.0.113.7\r\nx-forwarded-for: 198.51.100.1\r\n";
    let seen = seen(&scene, lines);
    assert_eq!(seen.one("x-real-ip"), "203.0.113.7");
    assert_eq!(seen.one("cf-connecting-ip"), "203.0.113.7");
}

#[test]
fn what_connection_names_is_not_removed_for_them() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    let lines = "connection: x-forwarded-for, x-real-ip\r\nx-forwarded-for: 203.0.113.7\r\n";
    let seen = seen(&scene, lines);
    assert_eq!(seen.one("x-real-ip"), "203.0.113.7");
    assert_eq!(list(&seen, "x-forwarded-for"), "203.0.113.7, 127.0.0.1");
}

#[test]
fn over_http_2_it_is_the_same() {
    let scene = Scene::with_rules(TRUSTED, &[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = request("GET", "/");
    asked.headers_mut().insert("x-forwarded-for", "203.0.113.7".parse().unwrap());
    let asked = caller.ask(asked);
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(list(&seen, "x-forwarded-for"), "203.0.113.7, 127.0.0.1");
    assert_eq!(seen.one("x-real-ip"), "203.0.113.7");
    backend.send(OK);
    assert_eq!(asked.answer().status(), 200);
}
