//! A rule in a few words, the same wherever one is shown.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::matching::{Condition, PathPattern};
use crate::rule::{Classes, Enforced, Rule, Settle, Tier};
use crate::secret::presentable;
use crate::source::printable;
use crate::{Absent, OnDeny, OnStoreError, StoreSettings};

impl Condition {
    /// `POST /login`, `all requests`.
    pub(crate) fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(methods) = &self.methods {
            parts.push(methods.names().join(" or "));
        }
        let hosts: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        let paths: Vec<_> = self.paths.iter().map(PathPattern::to_string).collect();
        if !paths.is_empty() {
            parts.push(paths.join(" or "));
        }
        if !hosts.is_empty() {
            parts.push(format!("on {}", hosts.join(" or ")));
        }
        for (fact, wanted) in &self.facts {
            parts.push(match wanted {
                crate::matching::Wanted::Any => format!("with {fact}"),
                crate::matching::Wanted::Value(value) => {
                    let value = presentable(fact, value.as_bytes().into());
                    format!("with {fact} = {}", String::from_utf8_lossy(&value))
                }
            });
        }
        for fact in &self.without {
            parts.push(format!("without {fact}"));
        }
        if parts.is_empty() { "all requests".to_owned() } else { parts.join(" ") }
    }
}

impl Tier {
    /// `60/min and 1000/day`.
    pub(crate) fn summary(&self) -> String {
        let quotas: Vec<_> = self.limits.iter().map(|limit| limit.quota.to_string()).collect();
        quotas.join(" and ")
    }
}

impl OnDeny {
    /// `403 with "no"`, `303 to /captcha`.
    pub(crate) fn summary(&self, usual: u16) -> String {
        let usual = if self.redirect.is_some() { 303 } else { usual };
        let mut text = self.status.unwrap_or(usual).to_string();
        if let Some(redirect) = &self.redirect {
            text.push_str(&format!(" to {redirect}"));
        }
        match &self.body {
            None => {}
            Some(body) if body.len() <= BODY_MAX => text.push_str(&format!(" with {body:?}")),
            // Two that are as long as each other are still told apart.
            Some(body) => {
                let hash = xxh3_64(body.as_bytes()) >> 32;
                text.push_str(&format!(" with {} bytes ({hash:08x})", body.len()));
            }
        }
        if let Some(kind) = &self.content_type {
            text.push_str(&format!(" as {kind}"));
        }
        text
    }
}

/// The longest body, in bytes, that is shown in a line.
const BODY_MAX: usize = 60;

impl fmt::Debug for Condition {
    /// In words, which tell no secret that is asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&format_args!("{}", self.summary())).finish()
    }
}

impl fmt::Debug for StoreSettings {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<_> = self.urls.iter().map(|url| printable(url)).collect();
        f.debug_struct("StoreSettings")
            .field("urls", &urls)
            .field("prefix", &self.prefix)
            .field("deadline", &self.deadline)
            .field("on_error", &self.on_error)
            .field("lease", &self.lease)
            .field("reconcile", &self.reconcile)
            .finish()
    }
}

impl Rule {
    /// `ip and header:user-agent`, `one counter for all`.
    pub(crate) fn by_summary(&self) -> String {
        if self.by.is_empty() {
            return "one counter for all".to_owned();
        }
        let alternatives = |facts: &Vec<crate::rule::Named>| {
            let names: Vec<_> = facts.iter().map(|named| named.name.as_str()).collect();
            names.join(" | ")
        };
        self.by.iter().map(alternatives).collect::<Vec<_>>().join(" and ")
    }

    /// What it says in words, item by item: what it matches, by what it counts, and so on.
    #[must_use]
    pub fn summary(&self) -> Vec<(&'static str, String)> {
        let mut items = vec![("match", self.condition.summary()), ("by", self.by_summary())];
        let limits = self.tiers.iter().map(|tier| match &tier.name {
            Some(name) => format!("{name}: {}", tier.summary()),
            None => tier.summary(),
        });
        let limits = match &self.capacity {
            Some(capacity) => capacity.summary(),
            None => limits.collect::<Vec<_>>().join("; "),
        };
        items.push(("limits", limits));
        if let Some(limit) = self.tiers.first().and_then(|tier| tier.limits.first()) {
            items.push(("algorithm", limit.algorithm.to_string()));
            items.push(("queue", limit.queue.map_or("none".into(), |places| places.to_string())));
            let undelayed = limit.undelayed.unwrap_or(0);
            items.push(("undelayed", undelayed.to_string()));
            items.push(("zone", limit.zone.to_string()));
            items.push(("consistency", limit.consistency.to_string()));
        }
        let adaptive = self.adaptive.as_ref();
        items
            .push(("adaptive", adaptive.map_or("no".into(), |(settings, _)| settings.to_string())));
        let classes = self.classes.map(|Classes { normal, background }| {
            format!("normal {normal}%, background {background}%")
        });
        items.push(("classes", classes.unwrap_or_else(|| "all alike".to_owned())));
        items.push(("cost", self.cost.units().to_string()));
        items.push((
            "settle",
            match &self.settle {
                Settle::Never => "at once".to_owned(),
                Settle::Header(name) => format!("by the response's {name}"),
                Settle::Bytes => "by the bytes of the response".to_owned(),
                Settle::ChargeOn(statuses) => {
                    let statuses: Vec<_> = statuses.iter().map(ToString::to_string).collect();
                    format!("charged only on {}", statuses.join(" or "))
                }
                Settle::Release => "when the response was sent".to_owned(),
            },
        ));
        items.push((
            "enforced",
            match self.enforced {
                Enforced::Always => "always".to_owned(),
                Enforced::Percent(percent) => format!("for {percent} of 100 keys"),
                Enforced::Never => "never (shadow)".to_owned(),
            },
        ));
        items.push((
            "on_store_error",
            match self.on_store_error {
                OnStoreError::Allow => "allow".to_owned(),
                OnStoreError::Deny => "deny".to_owned(),
                OnStoreError::Local => "local".to_owned(),
            },
        ));
        items.push((
            "absent",
            match self.absent {
                Absent::Share => "share".to_owned(),
                Absent::Skip => "skip".to_owned(),
                Absent::Deny => "deny".to_owned(),
            },
        ));
        let usual = if self.is_about_the_service() { 503 } else { 429 };
        let on_deny = self.on_deny.as_ref();
        items.push(("on_deny", on_deny.unwrap_or(&OnDeny::default()).summary(usual)));
        items
    }
}
