//! Entries as facts of a rule file.

use crate::door::{descriptor, request};
use crate::scene::{Scene, both_by_rules};

fn by(facts: &str) -> String {
    format!(
        "[[rule]]\nname = 'r'\nby = [{facts}]\nlimits = ['3/day']\nalgorithm = 'fixed-window'\n"
    )
}

/// These two are one to the rule.
#[track_caller]
fn shared(scene: &Scene, one: &[(&str, &str)], other: &[(&str, &str)]) {
    scene.cost("d", one, 2).passes(1);
    scene.cost("d", other, 1).passes(0);
    scene.cost("d", one, 1).is_denied(0);
}

#[test]
fn any_name_is_a_fact() {
    both_by_rules(&by("'fact:tenant', 'fact:generic_key'"), "", |scene| {
        let entries = |tenant, key| [("tenant", tenant), ("generic_key", key)];
        scene.apart("d", &entries("a", "x"), &entries("a", "y"));
        scene.apart("d", &entries("b", "x"), &entries("c", "x"));
        // In another order it is the same, and what the rule does not ask for does not matter.
        let reversed = [("generic_key", "z"), ("tenant", "t")];
        shared(scene, &reversed, &[("tenant", "t"), ("other", "1"), ("generic_key", "z")]);
    });
}

#[test]
fn the_domain_is_a_fact() {
    both_by_rules(&by("'fact:domain'"), "", |scene| {
        scene.cost("one", &[("k", "a")], 2).passes(1);
        scene.cost("one", &[("k", "b")], 1).passes(0);
        scene.cost("two", &[("k", "a")], 3).passes(0);
    });
}

/// Whatever entries say, the domain is the request's.
#[test]
fn an_entry_cannot_pass_for_the_domain() {
    let rules =
        "[[rule]]\nname = 'r'\nmatch = { fact = { domain = 'strict' } }\nlimits = ['1/day']\n";
    both_by_rules(rules, "", |scene| {
        scene.hit("strict", &[("domain", "loose")]).passes(0);
        scene.hit("strict", &[("domain", "loose")]).is_denied(0);
        scene.hit("loose", &[("k", "v")]).is_free();
    });
}

#[test]
fn an_address_is_the_ip_and_ipv6_goes_by_its_network() {
    both_by_rules(&by("'ip'"), "", |scene| {
        for name in ["remote_address", "ip"] {
            scene.apart(
                "d",
                &[(name, &format!("203.0.113.{}", name.len()))],
                &[(name, "203.0.113.8")],
            );
            let network = |host: &str| format!("2001:db8:0:{}::{host}", name.len());
            shared(scene, &[(name, &network("1"))], &[(name, &network("ffff"))]);
        }
        shared(scene, &[("remote_address", "198.51.100.1")], &[("ip", "198.51.100.1")]);
        let (one, other) = ("2001:db8:1:1::1", "2001:db8:1:2::1");
        scene.apart("d", &[("remote_address", one)], &[("remote_address", other)]);
    });
}

#[test]
fn as_the_application_says_it_is_what_it_says() {
    both_by_rules(&by("'fact:remote_address'"), "", |scene| {
        let of = |host| [("remote_address", host)];
        scene.apart("d", &of("2001:db8::1"), &of("2001:db8::2"));
        scene.apart("d", &of("not an address"), &of("nor this"));
    });
}

#[test]
fn path_and_method_and_host_are_those_of_the_request() {
    let rules = "[[rule]]\nname = 'login'\nmatch = { method = 'POST', path = '/login', host = 'example.com' }\n\
        limits = ['2/day']\nalgorithm = 'fixed-window'\n[[rule]]\nname = 'item'\n\
        match = { path = '/items/{id}' }\nby = ['param:id']\nlimits = ['5/day']\n\
        algorithm = 'fixed-window'\n";
    both_by_rules(rules, "", |scene| {
        let login = [("path", "/login"), ("method", "POST"), ("host", "example.com")];
        scene.hit("d", &login).passes(1);
        // However it is written.
        let odd = [("method", "POST"), ("host", "example.com"), ("path", "//login/")];
        scene.hit("d", &odd).passes(0);
        scene.hit("d", &login).is_denied(0);
        for other in [
            [("path", "/login"), ("method", "GET"), ("host", "example.com")],
            [("path", "/logout"), ("method", "POST"), ("host", "example.com")],
            [("path", "/login"), ("method", "POST"), ("host", "example.org")],
        ] {
            scene.hit("d", &other).is_free();
        }
        scene.apart("d", &[("path", "/items/1")], &[("path", "/items/2")]);
    });
}

#[test]
fn who_it_is_is_believed() {
    let rules = "[[rule]]\nname = 'r'\nby = ['user | api_key | ip']\n\
        tiers.free = ['3/day']\ntiers.pro = ['7/day']\nalgorithm = 'fixed-window'\n\
        [identity]\ndefault_tier = 'free'\n";
    both_by_rules(rules, "", |scene| {
        scene.holds("d", &[("user", "alice")], 3, "DAY");
        scene.holds("d", &[("user", "bob"), ("tier", "pro")], 7, "DAY");
        scene.holds("d", &[("api_key", "k1")], 3, "DAY");
        scene.holds("d", &[("remote_address", "203.0.113.7")], 3, "DAY");
        scene.hit("d", &[("user", "alice"), ("remote_address", "203.0.113.9")]).is_denied(0);
    });
}

/// Facts of one descriptor are not those of the next.
#[test]
fn each_descriptor_is_a_request() {
    let rules = "[[rule]]\nname = 'pair'\nby = ['fact:a', 'fact:b']\nabsent = 'skip'\n\
        limits = ['1/day']\n";
    both_by_rules(rules, "", |scene| {
        let apart = request("d", &[descriptor(&[("a", "1")]), descriptor(&[("b", "2")])]);
        for _ in 0..3 {
            let answer = scene.ask(&apart);
            assert!(
                !answer.over && answer.statuses.iter().all(|s| s.limit.is_none()),
                "{answer:?}"
            );
        }
        scene.hit("d", &[("a", "1"), ("b", "2")]).passes(0);
        scene.hit("d", &[("a", "1"), ("b", "2")]).is_denied(0);
    });
}
