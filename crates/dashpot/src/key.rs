//! Who is "the same caller": keys, any bytes at all.

use std::fmt;

use smallvec::SmallVec;

/// What a policy counts by: any bytes, borrowed, so asking allocates nothing.
///
/// A key is compared within its policy only. One value makes a key by itself (`"alice".into()`);
/// several values are joined by a [`KeyBuf`], which no choice of values can confuse.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key<'k>(&'k [u8]);

impl<'k> Key<'k> {
    /// The key of these bytes.
    #[must_use]
    pub const fn new(bytes: &'k [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'k [u8] {
        self.0
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(\"{}\")", self.0.escape_ascii())
    }
}

impl<'k> From<&'k str> for Key<'k> {
    fn from(text: &'k str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'k> From<&'k String> for Key<'k> {
    fn from(text: &'k String) -> Self {
        Self(text.as_bytes())
    }
}

impl<'k> From<&'k [u8]> for Key<'k> {
    fn from(bytes: &'k [u8]) -> Self {
        Self(bytes)
    }
}

impl<'k> From<&'k Vec<u8>> for Key<'k> {
    fn from(bytes: &'k Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl<'k, const N: usize> From<&'k [u8; N]> for Key<'k> {
    fn from(bytes: &'k [u8; N]) -> Self {
        Self(bytes)
    }
}

impl<'k> From<&'k KeyBuf> for Key<'k> {
    fn from(key: &'k KeyBuf) -> Self {
        key.as_key()
    }
}

/// A key made of several values, each preceded by its length: `("ab", "c")` and `("a", "bc")` are
/// two keys.
///
/// ```
/// use dashpot::{KeyBuf, Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_minute(5));
/// let key: KeyBuf = ["203.0.113.7", "alice@example.com"].into_iter().collect();
/// assert!(limiter.check(&key).is_allowed());
/// ```
///
/// Clear and refill one buffer to cut many keys without allocating for each. Count a policy either
/// by bare values or by `KeyBuf`s: a bare value that spells out another key's bytes is that key.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct KeyBuf(SmallVec<[u8; SHORT]>);

/// Keys up to this length are kept without the heap.
const SHORT: usize = 64;

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_key().fmt(f)
    }
}

impl KeyBuf {
    /// An empty key.
    #[must_use]
    pub const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    /// Appends a value.
    pub fn push(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        let value = value.as_ref();
        let mut length = value.len();
        // Seven bits to a byte, all but the last with the high bit: short values cost one byte.
        while length >= 0x80 {
            let [low, ..] = length.to_le_bytes();
            self.0.push(low | 0x80);
            length >>= 7;
        }
        let [low, ..] = length.to_le_bytes();
        self.0.push(low);
        self.0.extend_from_slice(value);
        self
    }

    /// Appends the values of another key.
    pub fn append(&mut self, key: Key<'_>) -> &mut Self {
        self.0.extend_from_slice(key.as_bytes());
        self
    }

    /// Forgets the values, keeps the room.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The key.
    #[must_use]
    pub fn as_key(&self) -> Key<'_> {
        Key(&self.0)
    }
}

impl<V: AsRef<[u8]>> FromIterator<V> for KeyBuf {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut key = Self::new();
        for value in values {
            key.push(value);
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[&str]) -> KeyBuf {
        values.iter().collect()
    }

    #[test]
    fn values_are_not_run_together() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["abc"]), key(&["abc", ""]));
        assert_ne!(key(&["a_b", "c"]), key(&["a", "b_c"]));
    }

    #[test]
    fn long_values_carry_long_lengths() {
        let long = "x".repeat(300);
        let key = key(&[&long]);
        assert_eq!(key.as_key().as_bytes().len(), 302);
        assert_eq!(&key.as_key().as_bytes()[..2], [0xac, 0x02]);
    }

    #[test]
    fn a_key_shows_its_bytes_when_debugged() {
        assert_eq!(format!("{:?}", Key::from(b"a\xff")), r#"Key("a\xff")"#);
        assert_eq!(format!("{:?}", key(&["ab", ""])), r#"Key("\x02ab\x00")"#);
    }
}
