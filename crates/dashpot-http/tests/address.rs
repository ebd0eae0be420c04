//! Whose address a request has, against a slow model, and against those who forge.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;

use dashpot_http::{RetryAfter, client_address};
use dashpot_rules::{Identity, Trust};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;

const XFF: &str = "x-forwarded-for";
const FORWARDED: &str = "forwarded";

/// Trusts 10.0.0.0/8 and fd00::/8.
fn proxies() -> Trust {
    Trust::Proxies(vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()])
}

fn identity(trust: Trust, header: &str) -> Identity {
    let mut identity = Identity::default();
    identity.trust = trust;
    identity.client_ip_header = header.to_owned();
    identity
}

fn trusted() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 3]>().prop_map(|[a, b, c]| Ipv4Addr::new(10, a, b, c).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits >> 8 | 0xfd << 120).into()),
    ]
}

fn untrusted() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (11..=255_u8, any::<[u8; 3]>())
            .prop_map(|(first, [a, b, c])| Ipv4Addr::new(first, a, b, c).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from(bits >> 8 | 0x20 << 120).into()),
    ]
}

/// One address in one of its spellings.
fn spelled(address: IpAddr) -> impl Strategy<Value = String> {
    let v4_mapped = |address: Ipv4Addr| address.to_ipv6_mapped().to_string();
    let forms = match address {
        IpAddr::V4(v4) => vec![
            v4.to_string(),
            format!("{v4}:80"),
            format!("\"{v4}:65535\""),
            v4_mapped(v4),
            format!("[{}]", v4_mapped(v4)),
            format!("\"[{}]:_port\"", v4_mapped(v4)),
        ],
        IpAddr::V6(v6) => vec![
            v6.to_string(),
            v6.to_string().to_uppercase(),
            format!("[{v6}]"),
            format!("[{v6}]:8080"),
            format!("{v6}%eth0"),
            format!("\"[{v6}%25en1]:1\""),
        ],
    };
    (prop::sample::select(forms), "[ \t]{0,2}", "[ \t]{0,2}")
        .prop_map(|(form, before, after)| format!("{before}{form}{after}"))
}

/// An element of `Forwarded` that says the same.
fn element(entry: &str, variant: u8) -> String {
    let entry = entry.trim();
    let value = if entry.starts_with('"') { entry.to_owned() } else { format!("\"{entry}\"") };
    match variant % 4 {
        0 => format!("for={value}"),
        1 => format!(" FOR={value};proto=https;host=\"a,b;for=6.6.6.6\""),
        2 => format!("by=\"\\\",for=6.6.6.6\\\\\";For={value} "),
        // Backslashes before what needs none.
        _ => format!("for=\"\\{}", value.trim_start_matches('"')),
    }
}

/// Entries spread over lines: `true` begins a new one.
fn lines(entries: &[(String, bool)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (entry, is_new) in entries {
        match lines.last_mut() {
            Some(line) if !is_new => *line = format!("{line},{entry}"),
            _ => lines.push(entry.clone()),
        }
    }
    lines
}

fn headers(header: &'static str, lines: &[Vec<u8>]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-other", HeaderValue::from_static("9.9.9.9"));
    for line in lines {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(HeaderName::from_static(header), value);
        }
    }
    headers
}

fn seen(trust: Trust, header: &'static str, peer: IpAddr, lines: &[Vec<u8>]) -> IpAddr {
    let headers = headers(header, lines);
    client_address(&identity(trust, header), Some(peer), &headers).unwrap().address
}

/// A chain of addresses as proxies saw it, the oldest first: the address, one of its spellings, and
/// whether a new line begins.
fn chain() -> impl Strategy<Value = Vec<(IpAddr, String, u8, bool)>> {
    let address = prop_oneof![3 => trusted(), 1 => untrusted()];
    let link = address
        .prop_flat_map(|address| (Just(address), spelled(address), any::<u8>(), any::<bool>()));
    vec(link, 0..12)
}

/// The lines of a header that says this, and what an attacker put before it on the same line.
fn written(
    header: &str,
    chain: &[(IpAddr, String, u8, bool)],
    forged: Option<&[u8]>,
) -> Vec<Vec<u8>> {
    let entry = |(_, spelled, variant, is_new): &(IpAddr, String, u8, bool)| {
        let entry = if header == FORWARDED { element(spelled, *variant) } else { spelled.clone() };
        (entry, *is_new)
    };
    let entries: Vec<_> = chain.iter().map(entry).collect();
    let mut lines: Vec<_> = lines(&entries).into_iter().map(String::into_bytes).collect();
    if let Some(forged) = forged {
        match lines.first_mut() {
            Some(line) => *line = [forged, b",", line].concat(),
            None => lines.push(forged.to_vec()),
        }
    }
    lines
}

fn is_10_or_fd(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[0] == 10,
        IpAddr::V6(address) => address.octets()[0] == 0xfd,
    }
}

/// What may stand in a header, with a taste for what matters to us.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b",".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\\".to_vec()),
        Just(b";for=".to_vec()),
        Just(b"for=\"".to_vec()),
        Just(b"10.0.0.1".to_vec()),
        Just(b"6.6.6.6".to_vec()),
        Just(b"[2001:db8::1]:80".to_vec()),
        Just(b"unknown".to_vec()),
        vec(prop_oneof![Just(b'\t'), 32..=126_u8, 128..=255_u8], 0..8),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_rightmost_untrusted_one_asks(
        chain in chain(),
        peer in trusted(),
        header in prop::sample::select(vec![XFF, FORWARDED, "x-real-ip"]),
    ) {
        // The model: from the right, the first that is none of ours; else the leftmost of all.
        let mut all: Vec<IpAddr> = chain.iter().map(|link| link.0).collect();
        all.push(peer);
        let expected = all.iter().rev().find(|address| !is_10_or_fd(**address)).unwrap_or(&all[0]);
        prop_assert_eq!(seen(proxies(), header, peer, &written(header, &chain, None)), *expected);
    }

    #[test]
    fn the_nth_from_the_right_asks(
        chain in chain(),
        hops in 1..=14_u8,
        peer in untrusted(),
        header in prop::sample::select(vec![XFF, FORWARDED]),
    ) {
        let index = chain.len().saturating_sub(hops.into());
        let expected = chain.get(index).map_or(peer, |link| link.0);
        let trust = Trust::Hops(NonZeroU8::new(hops).unwrap());
        prop_assert_eq!(seen(trust, header, peer, &written(header, &chain, None)), expected);
    }

    #[test]
    fn nobody_can_forge_by_what_they_put_to_the_left(
        trail in vec((trusted().prop_flat_map(|it| (Just(it), spelled(it))), any::<(u8, bool)>()), 0..5),
        (client, client_spelled) in untrusted().prop_flat_map(|it| (Just(it), spelled(it))),
        variant in any::<u8>(),
        forged in garbage(),
        more in vec(garbage(), 0..3),
        peer in trusted(),
        header in prop::sample::select(vec![XFF, FORWARDED]),
    ) {
        let mut chain = vec![(client, client_spelled, variant, true)];
        for ((address, spelled), (variant, is_new)) in trail {
            chain.push((address, spelled, variant, is_new));
        }
        let mut lines = more;
        lines.extend(written(header, &chain, Some(&forged)));
        prop_assert_eq!(seen(proxies(), header, peer, &lines), client);
        // The same with hops: as many as there are links.
        let hops = Trust::Hops(NonZeroU8::new(chain.len().try_into().unwrap()).unwrap());
        prop_assert_eq!(seen(hops, header, peer, &lines), client);
    }

    #[test]
    fn an_untrusted_peer_is_the_caller_whatever_it_says(
        lines in vec(garbage(), 0..4),
        peer in untrusted(),
        header in prop::sample::select(vec![XFF, FORWARDED]),
    ) {
        prop_assert_eq!(seen(Trust::Nobody, header, peer, &lines), peer);
        prop_assert_eq!(seen(proxies(), header, peer, &lines), peer);
    }

    #[test]
    fn garbage_harms_nobody(
        lines in vec(garbage(), 0..4),
        peer in trusted(),
        header in prop::sample::select(vec![XFF, FORWARDED]),
        hops in 1..=255_u8,
    ) {
        let headers = headers(header, &lines);
        for trust in [proxies(), Trust::Hops(NonZeroU8::new(hops).unwrap())] {
            let identity = identity(trust, header);
            let found = client_address(&identity, Some(peer), &headers).unwrap();
            prop_assert!(!found.why.to_string().is_empty());
            prop_assert_eq!(found.address, found.address.to_canonical());
        }
    }

    #[test]
    fn any_retry_after_is_read_or_ignored(
        value in prop_oneof![vec(any::<u8>(), 0..40), "[A-Za-z]{3}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT".prop_map(String::into_bytes), "[0-9]{1,30}".prop_map(String::into_bytes)],
        now in any::<u32>(),
    ) {
        let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(now.into());
        if let Some(read) = RetryAfter::parse(&value, now) {
            prop_assert!(read <= RetryAfter::MAX);
        }
    }
}

/// Long lines of what is worst to read take no longer than others.
#[test]
fn reading_is_linear() {
    let peer: IpAddr = "10.0.0.1".parse().unwrap();
    for piece in ["\"", "\\", "\\\"", "\",", "for=\"", ",", "10.0.0.2,", "for=10.0.0.2,"] {
        let line = piece.repeat(200_000).into_bytes();
        for header in [XFF, FORWARDED] {
            let lines = [line.clone(), line.clone()];
            let start = std::time::Instant::now();
            let _ = seen(proxies(), header, peer, &lines);
            // Squares of this would take minutes.
            assert!(start.elapsed().as_secs() < 5, "{piece} in {header}");
        }
    }
}
