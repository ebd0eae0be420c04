//! Who is never limited, and who is always refused.

use dashpot_rules::{Fact, Facts};

use super::{Answer, World, ip};

const RULE: &str = "[[rule]]\nname = 'r'\nby = 'ip'\nlimits = '1/min'\n";

fn world(lists: &str) -> World {
    World::new(&format!("{RULE}{lists}"))
}

fn blocked(fact: &str) -> Answer {
    Answer::Blocked(fact.to_owned())
}

#[test]
fn who_is_blocked_is_refused_even_if_also_allowed() {
    let world = world("[allow]\nip = '10.0.0.0/8'\n[block]\nip = '10.1.0.0/16'\nuser = 'mallory'");
    assert_eq!(world.passes(&ip("10.2.0.1")), 100);
    assert_eq!(world.ask(&ip("10.1.0.1")), blocked("ip"));
    assert_eq!(world.ask(&ip("10.2.0.1").user("mallory")), blocked("user"));
    assert_eq!(world.passes(&ip("192.0.2.1")), 1);
}

#[test]
fn who_is_blocked_is_refused_where_no_rule_matches_and_nothing_is_limited() {
    let world = World::new(
        "[block]\nip = '10.0.0.1'\n[[priority]]\nname = 'p'\nweight = 'unlimited'\n\
         [[rule]]\nname = 'r'\nlimits = '1/min'\nmatch.path = '/x'",
    );
    assert_eq!(world.ask(&ip("10.0.0.1")), blocked("ip"));
    assert_eq!(world.ask(&ip("10.0.0.1").with(Fact::Path, "/x")), blocked("ip"));
}

#[test]
fn networks_are_taken_as_they_are_meant() {
    // Bits behind the prefix, networks in networks, neighbours, and both kinds of addresses.
    let world = world(
        "[block]\nip = ['10.1.2.3/8', '10.200.0.0/16', '192.0.2.0/25', '192.0.2.128/25', \
         '2001:db8::/32', '203.0.113.7']",
    );
    for address in ["10.0.0.0", "10.255.255.255", "192.0.2.200", "2001:db8:1::1", "203.0.113.7"] {
        assert_eq!(world.ask(&ip(address)), blocked("ip"), "{address}");
    }
    assert_eq!(world.ask(&ip("::ffff:10.0.0.1")), blocked("ip"), "IPv4 in IPv6 is IPv4");
    for address in ["9.255.255.255", "11.0.0.0", "192.0.3.0", "2001:db9::", "203.0.113.8"] {
        assert_eq!(world.ask(&ip(address)), Answer::Allowed, "{address}");
    }
}

#[test]
fn an_address_is_what_it_is_not_what_a_fact_says() {
    let world = world("[allow]\nip = '127.0.0.1'");
    // Something that calls itself so has no address.
    assert_eq!(world.passes(&Facts::new().with(Fact::Ip, "127.0.0.1")), 1);
}

#[test]
fn secrets_are_listed_by_their_hash() {
    // printf %s sk_live | sha256sum
    let hash = "5bf528ec40786ad98c47828c45ba2b7f333cd2e57cd44f79d588cab99ddeac1c";
    let world = world(&format!("[block]\napi_key = '{hash}'"));
    assert_eq!(world.ask(&ip("1.1.1.1").api_key("sk_live")), blocked("api_key"));
    assert_eq!(world.ask(&ip("1.1.1.1").api_key(hash)), Answer::Allowed, "its hash is not the key");
}

#[test]
fn other_facts_are_listed_by_their_values() {
    let world =
        world("[block]\n'header:user-agent' = ['bad bot']\n[allow]\n'fact:tenant' = 'acme'");
    let agent = Fact::Header("user-agent".into());
    assert_eq!(
        world.ask(&ip("1.1.1.1").with(agent.clone(), "bad bot")),
        blocked("header:user-agent")
    );
    assert_eq!(world.ask(&ip("1.1.1.1").with(agent, "bad bots")), Answer::Allowed);
    assert_eq!(world.passes(&ip("1.1.1.1").set("tenant", "acme")), 100);
    assert_ne!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
}
