//! How a request becomes facts: what `[identity]` means.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU8;

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use crate::Fact;

/// How a request becomes facts, and whom to believe. Nobody, unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Whose word about others counts.
    pub trust: Trust,
    /// The header in which proxies say who asked: `x-forwarded-for`, `forwarded`, or one with a
    /// single address. In lower case.
    pub client_ip_header: String,
    /// How much of an IPv6 address tells callers apart. Who has one address of a network usually
    /// has them all.
    pub ipv6_prefix: u8,
    /// Where the user is told.
    pub user: Option<Fact>,
    /// Where the key is told.
    pub api_key: Option<Fact>,
    /// Where the tier is told.
    pub tier: Option<Fact>,
    /// The tier of those of whom nothing is known.
    pub default_tier: Option<String>,
    /// The keys that were handed out.
    pub keys: Keys,
    /// Where a token is told whose claims are facts.
    pub token: Fact,
    /// The most that is read of a body to find a field in it, in bytes.
    pub body_max: usize,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            trust: Trust::Nobody,
            client_ip_header: "x-forwarded-for".to_owned(),
            ipv6_prefix: 64,
            user: None,
            api_key: None,
            tier: None,
            default_tier: None,
            keys: Keys::default(),
            token: Fact::Header("authorization".to_owned()),
            body_max: 64 * 1024,
        }
    }
}

impl Identity {
    /// Whether the body has to be read to know this fact.
    pub(crate) fn is_in_body(&self, fact: &Fact) -> bool {
        let told = |source: &Option<Fact>| source.as_ref().is_some_and(Fact::is_in_body);
        match fact {
            Fact::User => told(&self.user) || told(&self.api_key),
            Fact::ApiKey => told(&self.api_key),
            Fact::Tier => told(&self.tier) || told(&self.api_key),
            _ => fact.is_in_body(),
        }
    }
}

/// Whose word about others counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nobody's: who connects is the caller.
    Nobody,
    /// That of those who connect from these networks.
    Proxies(Vec<IpNet>),
    /// That of whoever connects, because there are always so many proxies in front.
    Hops(NonZeroU8),
}

/// The keys that were handed out, by their SHA-256: what `api_keys_file` says.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keys(pub(crate) HashMap<[u8; 32], KeyHolder>);

/// Whose key it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyHolder {
    /// The user.
    pub user: Option<String>,
    /// The tier.
    pub tier: Option<String>,
}

impl Keys {
    /// Whose key this is, if it was handed out.
    #[must_use]
    pub fn holder(&self, key: &[u8]) -> Option<&KeyHolder> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&<[u8; 32]>::from(Sha256::digest(key)))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.len())
    }
}
