#![no_main]

//! Who asks, by `X-Forwarded-For` and `Forwarded`. The input is what an attacker sends; proxies add to it.

use std::net::IpAddr;
use std::num::NonZeroU8;

use dashpot_http::{address_text, client_address, mask};
use dashpot_rules::{Identity, Trust};
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;

const STRANGER: &str = "203.0.113.7";
const PROXY: &str = "10.0.0.1";

/// What a trusted proxy adds, and who that is: plain, and in quotes.
const ADDED: [(&str, &str, &str); 4] = [
    ("x-forwarded-for", STRANGER, STRANGER),
    ("x-forwarded-for", "[2001:db8::7]:80", "2001:db8::7"),
    ("forwarded", "for=203.0.113.7;proto=http", STRANGER),
    ("forwarded", r#"proto=http;for="[2001:db8::7]:80""#, "2001:db8::7"),
];

fuzz_target!(|data: &[u8]| {
    let lines = data.split(|byte| *byte == b'\n');
    let lines: Vec<_> = lines.filter_map(|line| HeaderValue::from_bytes(line).ok()).collect();
    for (name, added, meant) in ADDED {
        by(&lines, name, added, address(meant));
    }
});

fn by(lines: &[HeaderValue], name: &'static str, added: &str, meant: IpAddr) {
    let name = HeaderName::from_static(name);
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(&name, line.clone());
    }
    let proxies = Trust::Proxies(vec!["10.0.0.0/8".parse().expect("a network")]);
    let hop = Trust::Hops(NonZeroU8::MIN);

    // Whoever is not trusted is who connected.
    for trust in [Trust::Nobody, proxies.clone()] {
        assert_eq!(found(&trust, &name, STRANGER, &headers), address(STRANGER));
    }
    for trust in [&proxies, &hop] {
        let said = found(trust, &name, PROXY, &headers);
        assert_eq!(said, said.to_canonical());
        can_be_counted(said);
    }

    // What a proxy adds is the end of it, on a line of its own or on the last one: nothing before it counts.
    let mut apart = headers.clone();
    apart.append(&name, HeaderValue::from_str(added).expect("a value"));
    let mut behind = headers.clone();
    if let Some((last, others)) = lines.split_last() {
        behind.remove(&name);
        for line in others {
            behind.append(&name, line.clone());
        }
        let line = [last.as_bytes(), b", ", added.as_bytes()].concat();
        behind.append(&name, HeaderValue::from_bytes(&line).expect("a value"));
    } else {
        behind = apart.clone();
    }
    for headers in [&apart, &behind] {
        for trust in [&proxies, &hop] {
            assert_eq!(found(trust, &name, PROXY, headers), meant, "{headers:?}");
        }
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn found(trust: &Trust, name: &HeaderName, peer: &str, headers: &HeaderMap) -> IpAddr {
    let mut identity = Identity::default();
    identity.trust = trust.clone();
    identity.client_ip_header = name.as_str().to_owned();
    let found = client_address(&identity, Some(address(peer)), headers).expect("there is a peer");
    // It is told to people, in one line.
    assert!(!found.why.to_string().contains(|c: char| c.is_control()), "{:?}", found.why);
    found.address
}

/// The text that is counted by is the network's.
fn can_be_counted(said: IpAddr) {
    for prefix in [0, 1, 48, 56, 64, 127, 128] {
        let network = mask(said, prefix);
        assert_eq!(mask(network, prefix), network);
        let texts = (address_text(said, prefix), address_text(network, prefix));
        assert_eq!(texts.0.as_bytes(), texts.1.as_bytes());
    }
}
