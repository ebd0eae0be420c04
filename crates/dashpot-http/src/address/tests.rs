use http::{HeaderName, HeaderValue};

use super::*;

fn identity(trust: Trust, header: &str) -> Identity {
    let mut identity = Identity::default();
    identity.trust = trust;
    header.clone_into(&mut identity.client_ip_header);
    identity
}

fn proxies() -> Trust {
    Trust::Proxies(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
}

fn hops(hops: u8) -> Trust {
    Trust::Hops(hops.try_into().unwrap())
}

/// The address and the evidence for a peer and the lines of a header.
fn seen(trust: Trust, header: &'static str, peer: &str, lines: &[&str]) -> (String, String) {
    let identity = identity(trust, header);
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(HeaderName::from_static(header), HeaderValue::from_str(line).unwrap());
    }
    let found = client_address(&identity, Some(peer.parse().unwrap()), &headers).unwrap();
    (found.address.to_string(), found.why.to_string())
}

fn check(trust: Trust, header: &'static str, peer: &str, lines: &[&str], address: &str, why: &str) {
    let (seen, reason) = seen(trust, header, peer, lines);
    assert_eq!((seen.as_str(), reason.as_str()), (address, why), "{peer} {lines:?}");
}

const XFF: &str = "x-forwarded-for";

#[test]
fn without_trust_the_peer_is_the_caller() {
    let why = "the peer; no proxy is trusted, so no header was read";
    check(Trust::Nobody, XFF, "10.0.0.1", &["203.0.113.7"], "10.0.0.1", why);
    check(Trust::Nobody, XFF, "::ffff:10.0.0.1", &[], "10.0.0.1", why);
    let why = "the peer; it is no trusted proxy, so x-forwarded-for was not read";
    check(proxies(), XFF, "198.51.100.1", &["203.0.113.7"], "198.51.100.1", why);
}

#[test]
fn proxies_are_walked_past_from_the_right_over_all_lines() {
    let why = "2nd from the right in x-forwarded-for, the first that is no trusted proxy";
    let lines = ["1.1.1.1, 203.0.113.7", "10.9.9.9:80"];
    check(proxies(), XFF, "::ffff:10.0.0.1", &lines, "203.0.113.7", why);
    let why = "the last in x-forwarded-for, the first that is no trusted proxy";
    check(proxies(), XFF, "fd00::1", &["6.6.6.6,[2001:db8::1]:9"], "2001:db8::1", why);
    check(proxies(), XFF, "10.0.0.1", &["6.6.6.6, 203.0.113.7, ,"], "203.0.113.7", why);
}

#[test]
fn if_all_are_proxies_the_leftmost_asks() {
    let why = "2nd from the right in x-forwarded-for, the leftmost; all are trusted proxies";
    check(proxies(), XFF, "10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", why);
    let why = "the peer; it is a trusted proxy, but x-forwarded-for names nobody";
    check(proxies(), XFF, "10.0.0.1", &[], "10.0.0.1", why);
    check(proxies(), XFF, "10.0.0.1", &["", " ,"], "10.0.0.1", why);
}

#[test]
fn garbage_stops_the_walk_at_the_last_good_one() {
    let why = "the last in x-forwarded-for; stopped at `garbage`, which is no address";
    check(proxies(), XFF, "10.0.0.1", &["1.1.1.1, garbage, 10.0.0.2"], "10.0.0.2", why);
    let long = "x".repeat(60);
    let why = format!(
        "the peer, for lack of a better one in x-forwarded-for; stopped at `{}…`, which is no address",
        "x".repeat(40)
    );
    check(proxies(), XFF, "10.0.0.1", &[&long], "10.0.0.1", &why);
}

#[test]
fn with_hops_the_nth_from_the_right_asks() {
    let why = "2nd from the right in x-forwarded-for, as many as there are proxies";
    check(hops(2), XFF, "8.8.8.8", &["6.6.6.6, 203.0.113.7", "_hidden"], "203.0.113.7", why);
    let why = "the last in x-forwarded-for; 3 proxies are configured, but it names 2";
    check(hops(3), XFF, "8.8.8.8", &["what, 203.0.113.7"], "203.0.113.7", why);
    let why = "the peer, for lack of a better one in x-forwarded-for; 3 proxies are configured, but it names 0";
    check(hops(3), XFF, "8.8.8.8", &[], "8.8.8.8", why);
    let why = "the last in x-forwarded-for; stopped at `what`, which is no address";
    check(hops(2), XFF, "8.8.8.8", &["6.6.6.6, what, 203.0.113.7"], "203.0.113.7", why);
}

#[test]
fn forwarded_is_read_as_its_rfc_says() {
    let why = "2nd from the right in forwarded, the first that is no trusted proxy";
    let lines = [
        r#"for=6.6.6.6, For="[2001:db8::17]:4711";host="a,b""#,
        "proto=https;for=10.0.0.2;by=10.0.0.1",
    ];
    check(proxies(), "forwarded", "10.0.0.1", &lines, "2001:db8::17", why);
    let why = "the peer, for lack of a better one in forwarded; stopped at `for=unknown`, which is no address";
    check(proxies(), "forwarded", "10.0.0.1", &["for=unknown"], "10.0.0.1", why);
}

#[test]
fn a_header_of_one_address_is_a_list_of_one() {
    let (address, _) = seen(proxies(), "cf-connecting-ip", "10.0.0.1", &["2001:db8::1"]);
    assert_eq!(address, "2001:db8::1");
}

#[test]
fn no_more_than_64_entries_are_read() {
    let why = "64th from the right in x-forwarded-for; stopped there, for it has too many entries";
    let line = "10.0.0.2,".repeat(100) + "10.0.0.3";
    check(proxies(), XFF, "10.0.0.1", &[&line], "10.0.0.2", why);
}

#[test]
fn without_a_peer_nobody_is_trusted() {
    let headers = HeaderMap::new();
    assert_eq!(client_address(&identity(hops(1), XFF), None, &headers), None);
    assert!(!is_trusted(&hops(1), None));
    assert!(is_trusted(&hops(1), Some("8.8.8.8".parse().unwrap())));
    assert!(is_trusted(&proxies(), Some("::ffff:10.0.0.1".parse().unwrap())));
}

#[test]
fn only_ipv6_is_masked_and_only_after_unmapping() {
    let masked = |address: &str, prefix| mask(address.parse().unwrap(), prefix).to_string();
    assert_eq!(masked("2001:db8:1:2:3:4:5:6", 56), "2001:db8:1::");
    assert_eq!(masked("2001:db8:1:2:3:4:5:6", 200), "2001:db8:1:2:3:4:5:6");
    assert_eq!(masked("::ffff:203.0.113.7", 0), "203.0.113.7");
    assert_eq!(masked("2001:db8::1", 0), "::");
}
