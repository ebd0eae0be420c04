//! Allow and block lists.

use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Compiler;
use crate::Fact;
use crate::lists::{Lists, Networks, canonical};
use crate::matching::normal;
use crate::read::{List, Map, tell_fact};
use crate::source::Written;

impl Compiler<'_> {
    pub(super) fn lists(&mut self, written: Option<&Written<Map<List<String>>>>) -> Lists {
        let mut lists = Lists::default();
        let mut networks = Vec::new();
        for (name, items) in written.map_or(&[][..], |map| &map.value.0) {
            let fact = match name.value.parse::<Fact>() {
                Ok(fact) => fact,
                Err(error) => {
                    tell_fact(&error, &name.value, &name.span, &mut self.problems);
                    continue;
                }
            };
            self.available(&fact, &name.span);
            let mut values = HashSet::new();
            for item in &items.value.0 {
                match &fact {
                    Fact::Ip => networks.extend(self.network(item)),
                    Fact::Param(_) => {
                        let message = "a list is about all requests, and `param:` about one rule's";
                        self.error(&name.span, message);
                    }
                    _ if fact.is_secret() => values.extend(self.digest(item)),
                    // As bodies are read: one spelling for all.
                    Fact::Json(_) | Fact::Form(_) => {
                        values.insert(item.value.trim().to_lowercase().into_bytes());
                    }
                    Fact::Path => {
                        values.insert(normal(&item.value).into_owned().into_bytes());
                    }
                    _ => {
                        values.insert(item.value.clone().into_bytes());
                    }
                }
            }
            if !values.is_empty() {
                lists.values.push((fact, values));
            }
        }
        lists.networks = Networks::new(&networks);
        lists
    }

    fn network(&mut self, item: &Written<String>) -> Option<IpNet> {
        let network = item.value.parse::<IpNet>();
        let network = network.or_else(|_| item.value.parse::<IpAddr>().map(IpNet::from));
        if network.is_err() {
            let message = format!("`{}` is not an address or a network", item.value);
            self.error_with(&item.span, message, "write `203.0.113.7` or `10.0.0.0/8`");
        }
        network.ok().map(canonical)
    }

    fn digest(&mut self, item: &Written<String>) -> Option<Vec<u8>> {
        let digest = item.value.to_ascii_lowercase();
        if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(digest.into_bytes());
        }
        let message = "secrets are listed by their SHA-256, 64 digits";
        let found = self.problems.error(&item.span, message);
        found.hint("printf %s KEY | sha256sum");
        // It may be the secret itself.
        found.hide();
        None
    }
}
