//! The facts of a descriptor, as rules see them.

use std::borrow::Cow;
use std::net::IpAddr;

use dashpot_http::address_text;
use dashpot_rules::{Descriptor, Fact, RuleSet};

use super::message::Entry;

/// A descriptor of a domain: its entries are facts by their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) domain: &'a str,
    pub(super) entries: &'a [Entry],
    pub(super) rules: &'a RuleSet,
}

impl<'a> Facts<'a> {
    /// The first entry of a name.
    fn entry(&self, name: &str) -> Option<&'a str> {
        let entry = self.entries.iter().find(|entry| entry.key == name)?;
        Some(&entry.value)
    }
}

impl Descriptor for Facts<'_> {
    fn method(&self) -> &str {
        self.entry("method").unwrap_or_default()
    }

    fn path(&self) -> &str {
        // Envoy's `:path` has the query, too.
        let path = self.entry("path").unwrap_or_default();
        path.split_once('?').map_or(path, |(path, _)| path)
    }

    fn fact(&self, fact: &Fact) -> Option<Cow<'_, [u8]>> {
        let found = match fact {
            Fact::Ip => {
                let prefix = self.rules.identity().ipv6_prefix;
                let text = address_text(self.address()?, prefix);
                return Some(Cow::Owned(text.as_bytes().to_vec()));
            }
            Fact::Path => Some(self.path()).filter(|path| !path.is_empty()),
            Fact::Method => self.entry("method"),
            Fact::Host => self.entry("host"),
            Fact::User => self.entry("user"),
            Fact::ApiKey => self.entry("api_key"),
            Fact::Tier => self.entry("tier"),
            // Whatever entries are called: their values may be a caller's choice.
            Fact::Custom(name) if name == "domain" => Some(self.domain),
            Fact::Custom(name) => self.entry(name),
            _ => None,
        };
        found.map(|value| Cow::Borrowed(value.as_bytes()))
    }

    fn address(&self) -> Option<IpAddr> {
        let text = self.entry("ip").or_else(|| self.entry("remote_address"))?;
        text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
    }
}
