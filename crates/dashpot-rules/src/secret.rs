//! What must not be read by others.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::Fact;

/// Values longer than this are hashed, or a caller could make keys of any length.
const VALUE_MAX: usize = 128;

/// How a hash begins.
const HASHED: &str = "sha256:";

/// A value as it may go into keys, logs and metrics.
pub(crate) fn presentable<'v>(fact: &Fact, value: Cow<'v, [u8]>) -> Cow<'v, [u8]> {
    shown(fact.is_secret(), value)
}

/// [`presentable`], if it is known already whether it is a secret.
pub(crate) fn shown(is_secret: bool, value: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    // What looks like a hash is hashed, or it could stand for what has that hash.
    if !is_secret && value.len() <= VALUE_MAX && !value.starts_with(HASHED.as_bytes()) {
        return value;
    }
    // Half of the hash is enough to tell values apart, and too little to guess one by.
    let mut text = String::with_capacity(HASHED.len() + 32);
    text.push_str(HASHED);
    text.extend(digits(&value).take(32));
    Cow::Owned(text.into_bytes())
}

/// The SHA-256 of a value, as people write it.
pub(crate) fn hexadecimal(value: &[u8]) -> String {
    digits(value).collect()
}

fn digits(value: &[u8]) -> impl Iterator<Item = char> {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble & 15)).copied().unwrap_or('0');
    let hash: [u8; 32] = Sha256::digest(value).into();
    hash.into_iter().flat_map(move |byte| [digit(byte >> 4), digit(byte)])
}
