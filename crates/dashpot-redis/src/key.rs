//! Where the state of a policy and key is kept.
//!
//! `dashpot:{alice}:api:t60000000`: the prefix; the caller's key as the tag by which a cluster places it, so
//! that all a caller is counted by is on one node, and different callers are anywhere; the policy's name;
//! and its algorithm and window, which what was counted belongs to.

use dashpot::{Algorithm, Key, Policy};

/// The number of slots in a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The letter of an algorithm in names of keys.
const fn letter(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::TokenBucket => b't',
        Algorithm::LeakyBucket => b'k',
        Algorithm::FixedWindow => b'f',
        Algorithm::SlidingLog => b'l',
        Algorithm::SlidingWindow => b's',
        Algorithm::Concurrency => b'n',
    }
}

/// The name of the key with this policy's state of this caller.
pub(crate) fn state_key(prefix: &str, policy: &Policy, key: Key<'_>) -> Vec<u8> {
    let (key, name) = (key.as_bytes(), policy.name().as_bytes());
    let mut whole = Vec::with_capacity(prefix.len() + key.len() + name.len() + 32);
    whole.extend_from_slice(prefix.as_bytes());
    whole.extend_from_slice(b":{");
    tag(policy, key, &mut whole);
    whole.extend_from_slice(b"}:");
    whole.extend_from_slice(name);
    whole.push(b':');
    if policy.quota().is_unlimited() {
        whole.push(b'u');
    }
    whole.push(letter(policy.algorithm()));
    if let Some(window) = policy.quota().window().filter(|_| !policy.is_any_window()) {
        let mut digits = |number: u64| whole.extend_from_slice(number.to_string().as_bytes());
        match window.as_months() {
            Some(months) => {
                digits(months.into());
                whole.push(b'm');
            }
            None => digits(u64::try_from(window.length().as_micros()).unwrap_or(u64::MAX)),
        }
    }
    if !policy.zone().is_utc() {
        whole.push(b'@');
        whole.extend_from_slice(policy.zone().name().as_bytes());
    }
    whole
}

/// What the key is placed by. What everybody is counted by has no caller: it is placed by its policy, so
/// that not all of that is on one node. What is escaped is never `%-`.
fn tag(policy: &Policy, key: &[u8], whole: &mut Vec<u8>) {
    if key.is_empty() {
        whole.extend_from_slice(b"%-");
        escape(policy.name().as_bytes(), whole);
    } else {
        escape(key, whole);
    }
}

/// Writes bytes so that they are printable and end no tag.
fn escape(bytes: &[u8], whole: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b'%') {
            whole.push(byte);
        } else {
            let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or(b'0');
            whole.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// The bytes that were escaped; `None` if none were.
pub(crate) fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(*rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            bytes.push(u8::try_from(high << 4 | low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

/// What a key is placed by: what is between the first braces.
pub(crate) fn placed_by(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let inner = key.get(open + 1..)?;
        inner.get(..inner.iter().position(|&byte| byte == b'}')?)
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The slot of a cluster that a key is in: CRC16 (XMODEM) of what it is placed by.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let crc = placed_by(key).iter().fold(0_u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use dashpot::Quota;

    use super::*;

    fn named(policy: &Policy, key: &str) -> String {
        String::from_utf8(state_key("dashpot", policy, Key::from(key))).unwrap()
    }

    #[test]
    fn a_key_says_who_what_and_how() {
        let api = Policy::new("api", Quota::per_minute(100)).unwrap();
        assert_eq!(named(&api, "alice"), "dashpot:{alice}:api:t60000000");
        assert_eq!(named(&api, ""), "dashpot:{%-api}:api:t60000000");
        let month = Policy::builder("bill", Quota::per_month(5))
            .algorithm(Algorithm::FixedWindow)
            .zone("Europe/Berlin".parse().unwrap())
            .build()
            .unwrap();
        assert_eq!(named(&month, "a"), "dashpot:{a}:bill:f1m@Europe/Berlin");
    }

    #[test]
    fn a_bucket_of_any_window_has_one_key_for_all() {
        let named = |quota: Quota, algorithm, key| {
            let api = Policy::builder("api", quota).algorithm(algorithm).any_window();
            named(&api.build().unwrap(), key)
        };
        for quota in [Quota::per_minute(100), Quota::per_second(7).burst(9), Quota::per_month(1)] {
            let token = named(quota, Algorithm::TokenBucket, "alice");
            assert_eq!(token, "dashpot:{alice}:api:t");
            assert_eq!(named(quota, Algorithm::LeakyBucket, ""), "dashpot:{%-api}:api:k");
        }
    }

    #[test]
    fn no_key_ends_its_tag_or_looks_like_another() {
        let api = Policy::new("api", Quota::per_minute(100)).unwrap();
        let odd = ["}", "{", "%", "%7d", "%-api", "api", "", "a b", "\0", "é"];
        for one in odd {
            let whole = named(&api, one);
            let tag = placed_by(whole.as_bytes());
            assert!(whole.ends_with("}:api:t60000000"), "{whole}");
            assert_eq!(tag.len(), whole.len() - "dashpot:{}:api:t60000000".len(), "{whole}");
            if !one.is_empty() {
                assert_eq!(unescape(tag).unwrap(), one.as_bytes());
            }
            assert!(odd.iter().filter(|other| named(&api, other) == whole).count() == 1);
        }
    }

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }
}
