//! One address as proxies write it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str;

/// Reads `203.0.113.7`, `203.0.113.7:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`, each
/// also in quotes, those of IPv6 also with a `%zone`, which means nothing to us.
pub(super) fn parse_entry(written: &[u8]) -> Option<IpAddr> {
    let written = written.trim_ascii();
    let written = match written {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        plain => plain,
    };
    let text = str::from_utf8(written).ok()?;
    let address = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) = bracketed.split_once(']')?;
            is_port_or_nothing(rest).then(|| parse_v6(address))?.map(IpAddr::V6)
        }
        None => match text.split_once(':') {
            None => parse_v4(text),
            Some((address, port)) if !port.contains(':') => {
                is_port(port).then(|| parse_v4(address))?
            }
            Some(_) => parse_v6(text).map(IpAddr::V6),
        },
    };
    address.map(|address| address.to_canonical())
}

fn parse_v4(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv4Addr>().ok().map(IpAddr::V4)
}

fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    let address = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((address, _zone)) => address,
        None => text,
    };
    address.parse().ok()
}

fn is_port_or_nothing(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(is_port)
}

/// Digits, or a made-up name as `Forwarded` allows it.
fn is_port(text: &str) -> bool {
    let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    let is_hidden = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-'))
    };
    is_number || text.strip_prefix('_').is_some_and(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        parse_entry(text.as_bytes()).map(|address| address.to_string())
    }

    #[test]
    fn an_address_may_be_spelled_in_many_ways() {
        for text in [
            "203.0.113.7",
            " 203.0.113.7\t",
            "203.0.113.7:80",
            "\"203.0.113.7:65535\"",
            "203.0.113.7:_a",
        ] {
            assert_eq!(read(text).as_deref(), Some("203.0.113.7"), "{text}");
        }
        for text in [
            "2001:db8::1",
            "[2001:db8::1]",
            "[2001:DB8:0::1]:80",
            "\"[2001:db8::1%eth0]:_x.y\"",
            "2001:db8::1%25eth0",
        ] {
            assert_eq!(read(text).as_deref(), Some("2001:db8::1"), "{text}");
        }
        for text in ["::ffff:203.0.113.7", "[::ffff:203.0.113.7]:80", "::ffff:cb00:7107%1"] {
            assert_eq!(read(text).as_deref(), Some("203.0.113.7"), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            "\"",
            "\"\"",
            "unknown",
            "_hidden",
            "localhost",
            "203.0.113",
            "203.0.113.07",
            "203.0.113.7:",
            "203.0.113.7:x",
            "203.0.113.7:123456",
            "203.0.113.7%eth0",
            "[203.0.113.7]",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]80",
            "[2001:db8::1]:",
            "2001:db8::1%",
            "1.2.3.4 5.6.7.8",
            "\"1.2.3.4",
            ":80",
            "::ffff:1.2.3.4:80:80:80:80:80:80",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(parse_entry(b"203.0.113.7\xff"), None);
    }
}
