//! What this service signs with, and hides names with.

use std::num::NonZeroU32;

use aws_lc_rs::hmac::{self, HMAC_SHA256, Key};
use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA256};

/// A key that nobody else has, or only those who have the same token.
#[derive(Debug)]
pub(crate) struct Secret {
    signing: Key,
    hiding: Key,
}

/// How much work it is to try a token: some hundredths of a second.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();

/// How long a signature is, in bytes.
pub(crate) const SIGNATURE: usize = 16;

impl Secret {
    /// Instances with the same token and the same `place` to count have the same secret; without a token each
    /// has its own.
    /// `None` if there is no randomness.
    pub(crate) fn new(token: Option<&str>, place: &str) -> Option<Self> {
        let mut from = [0_u8; 32];
        match token {
            // Slowly: who holds a reservation is not to try tokens until one fits.
            Some(token) => {
                let salt = b"dashpot admin token";
                pbkdf2::derive(PBKDF2_HMAC_SHA256, ROUNDS, salt, token.as_bytes(), &mut from);
            }
            // The system's: the library's own takes 40 ms to begin with.
            None => getrandom::fill(&mut from).ok()?,
        }
        let derive = |purpose: &str| {
            let derived = hmac::sign(&Key::new(HMAC_SHA256, &from), purpose.as_bytes());
            Key::new(HMAC_SHA256, derived.as_ref())
        };
        Some(Self {
            signing: derive(&format!("dashpot reservation {place}")),
            hiding: derive("dashpot log"),
        })
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let mut short = [0; SIGNATURE];
        let tag = hmac::sign(&self.signing, message);
        for (to, from) in short.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        short
    }

    /// Whether it was signed with this secret.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(&self.sign(message), signature).is_ok()
    }

    /// What the log calls a key: the same for the same key, and nobody can tell whose it is.
    pub(crate) fn hide(&self, rule: &str, key: &[u8]) -> String {
        let mut message = Vec::with_capacity(rule.len() + 1 + key.len());
        message.extend_from_slice(rule.as_bytes());
        message.push(0);
        message.extend_from_slice(key);
        let tag = hmac::sign(&self.hiding, &message);
        tag.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether two texts are the same, in a time that does not tell where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let hash = |text: &str| aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let (one, other) = (hash(one), hash(other));
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_ref(), other.as_ref()).is_ok()
}
