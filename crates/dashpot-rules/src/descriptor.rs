//! The facts of one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::Fact;
use crate::secret::presentable;

/// The facts of one request. Facts are asked for one by one, and only those that a matching rule
/// wants, so they may be found when they are asked for.
///
/// An implementer believes nobody without a reason: what is not sure is not there.
pub trait Descriptor {
    /// The method; nothing if there is none.
    fn method(&self) -> &str;

    /// The path, without the query; nothing if there is none.
    fn path(&self) -> &str;

    /// What is known of this fact, if anything.
    fn fact(&self, fact: &Fact) -> Option<Cow<'_, [u8]>>;

    /// The caller's whole address, of which `ip` may be a part.
    fn address(&self) -> Option<IpAddr>;

    /// Why the fact is what it is, or why it is not there, in words.
    fn why(&self, fact: &Fact) -> String {
        match self.fact(fact) {
            Some(_) => "given".to_owned(),
            None => "not given".to_owned(),
        }
    }
}

/// Facts that are known beforehand: for an application that adds its own, and for tests.
///
/// ```
/// use dashpot_rules::Facts;
///
/// let facts = Facts::new().user("alice").tier("pro").set("tenant", "acme");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Facts {
    values: BTreeMap<Fact, String>,
    address: Option<IpAddr>,
}

impl Facts {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The user.
    #[must_use]
    pub fn user(self, user: impl Into<String>) -> Self {
        self.with(Fact::User, user)
    }

    /// The API key.
    #[must_use]
    pub fn api_key(self, key: impl Into<String>) -> Self {
        self.with(Fact::ApiKey, key)
    }

    /// The tier.
    #[must_use]
    pub fn tier(self, tier: impl Into<String>) -> Self {
        self.with(Fact::Tier, tier)
    }

    /// The address.
    #[must_use]
    pub fn ip(mut self, address: IpAddr) -> Self {
        let address = address.to_canonical();
        self.address = Some(address);
        self.with(Fact::Ip, address.to_string())
    }

    /// Something else, by a name that rules call `fact:NAME`.
    #[must_use]
    pub fn set(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(Fact::Custom(name.into()), value)
    }

    /// Any fact.
    #[must_use]
    pub fn with(mut self, fact: Fact, value: impl Into<String>) -> Self {
        self.values.insert(fact, value.into());
        self
    }

    /// What was said of this fact.
    #[must_use]
    pub fn get(&self, fact: &Fact) -> Option<&str> {
        self.values.get(fact).map(String::as_str)
    }
}

impl fmt::Debug for Facts {
    /// With secrets as hashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |fact: &Fact, value: &str| {
            presentable(fact, value.as_bytes().into()).escape_ascii().to_string()
        };
        let facts = self.values.iter().map(|(fact, value)| (fact.to_string(), show(fact, value)));
        f.debug_map().entries(facts).finish()
    }
}

impl Descriptor for Facts {
    fn method(&self) -> &str {
        self.get(&Fact::Method).unwrap_or_default()
    }

    fn path(&self) -> &str {
        self.get(&Fact::Path).unwrap_or_default()
    }

    fn fact(&self, fact: &Fact) -> Option<Cow<'_, [u8]>> {
        self.get(fact).map(|value| Cow::Borrowed(value.as_bytes()))
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }
}
