//! Limits: how they are named, and whether they fit together.

use std::collections::HashMap;
use std::sync::OnceLock;

use dashpot::{Algorithm, Policy, PolicyError, Quota, Zone};

use super::Compiler;
use crate::Identity;
use crate::config::RuleSection;
use crate::read::List;
use crate::rule::{Limit, Priority, Tier};
use crate::source::{Span, Written};

/// The names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Where each rule has its name.
    pub(super) rules: HashMap<String, Span>,
    /// The rule each policy belongs to.
    policies: HashMap<String, String>,
}

/// The name of a tier, if it is not everybody's, and its limits.
type WrittenTier<'w> = (Option<&'w Written<String>>, &'w Written<List<Quota>>);

impl Compiler<'_> {
    pub(super) fn tiers(
        &mut self,
        name: &Written<String>,
        section: &RuleSection,
        identity: &Identity,
        priorities: &[Priority],
    ) -> Vec<Tier> {
        let written: Vec<WrittenTier<'_>> = match (&section.limits, &section.tiers) {
            (Some(limits), None) => vec![(None, limits)],
            (None, Some(tiers)) => {
                tiers.value.0.iter().map(|(tier, limits)| (Some(tier), limits)).collect()
            }
            (Some(_), Some(tiers)) => {
                self.error(&tiers.span, "`tiers` goes instead of `limits`, not with it");
                return Vec::new();
            }
            // It has none.
            (None, None) if section.capacity.is_some() => return Vec::new(),
            // What is wrong with them was told.
            (None, None)
                if section
                    .misread
                    .iter()
                    .any(|key| ["limits", "tiers", "capacity"].contains(key)) =>
            {
                return Vec::new();
            }
            (None, None) => {
                let hint = "write limits = [\"100/min\"], or tiers.free = [\"60/min\"]";
                self.error_with(&name.span, "this rule has no limits", hint);
                return Vec::new();
            }
        };
        if section.tiers.is_some() {
            self.default_tier(name, &written, identity);
        }
        // If one tier has several limits, those of all are named after their windows: the counts of
        // a caller go on when it changes its tier.
        let several = written.iter().any(|(_, limits)| limits.value.0.len() > 1);
        let mut tiers = Vec::new();
        for (tier, limits) in written {
            if limits.value.0.is_empty() {
                let hint = "write \"unlimited\" if there should be none";
                self.error_with(&limits.span, "no limits", hint);
            }
            let limits = self.limits(&name.value, section, &limits.value.0, several, priorities);
            tiers.push(Tier {
                name: tier.map(|tier| tier.value.clone()),
                policies: limits.iter().filter_map(|limit| limit.build().ok()).collect(),
                limits,
                weighted: priorities.iter().map(|_| OnceLock::new()).collect(),
            });
        }
        tiers
    }

    fn default_tier(
        &mut self,
        name: &Written<String>,
        tiers: &[WrittenTier<'_>],
        identity: &Identity,
    ) {
        let names = tiers.iter().filter_map(|(tier, _)| tier.map(|tier| tier.value.as_str()));
        let names: Vec<&str> = names.collect();
        let first = names.first().copied().unwrap_or("free");
        match identity.default_tier.as_deref() {
            None => self.error_with(
                &name.span,
                "who is on no tier gets which limits here?",
                format!("write default_tier = \"{first}\" under [identity]"),
            ),
            Some(default) if !names.contains(&default) => {
                let message = format!(
                    "this rule has no limits for the default tier `{default}`, only for {}",
                    names.join(", ")
                );
                self.error(&name.span, message);
            }
            Some(_) => {}
        }
    }

    fn limits(
        &mut self,
        rule: &str,
        section: &RuleSection,
        quotas: &[Written<Quota>],
        several: bool,
        priorities: &[Priority],
    ) -> Vec<Limit> {
        let mut limits: Vec<Limit> = Vec::new();
        for Written { value: quota, span } in quotas {
            let window = match (quota.window(), quota.is_concurrent()) {
                (Some(window), _) => window.to_string(),
                (None, true) => "concurrent".to_owned(),
                (None, false) => "unlimited".to_owned(),
            };
            let name = if several { format!("{rule}-{window}") } else { rule.to_owned() };
            if limits.iter().any(|known| known.name == name) {
                let message =
                    format!("two limits on one window, `{window}`; the stricter is enough");
                self.error(span, message);
                continue;
            }
            let limit = Limit {
                name,
                quota: *quota,
                algorithm: match &section.algorithm {
                    Some(algorithm) => algorithm.value,
                    None => Algorithm::natural(*quota),
                },
                queue: section.queue.as_ref().map(|queue| queue.value),
                undelayed: section.undelayed.as_ref().map(|places| places.value),
                zone: section.zone.as_ref().map_or(Zone::UTC, |zone| zone.value.clone()),
                consistency: section
                    .consistency
                    .as_ref()
                    .map(|written| written.value)
                    .unwrap_or_default(),
            };
            match limit.build() {
                Ok(policy) => {
                    let cost = section.cost.as_ref().map_or(1, |cost| cost.value);
                    if cost > policy.limit() && policy.limit() > 0 {
                        let span = section.cost.as_ref().map_or(span, |cost| &cost.span);
                        let message =
                            format!("a cost of {cost} can never pass `{quota}`: nothing would");
                        self.error(span, message);
                    }
                    self.fit(&policy, span);
                    self.weigh(&limit, priorities, span);
                }
                Err(error) => self.misfit(&error, section, span),
            }
            limits.push(limit);
        }
        limits
    }

    /// Sees that a limit is right with the weight of each priority, too.
    /// What cannot be kept exactly is said now, not when somebody is limited by it.
    fn fit(&mut self, policy: &Policy, span: &Span) {
        if self.on_redis
            && let Err(unfit) = policy.fits_micros()
        {
            self.error(span, unfit.to_string());
        }
    }

    fn weigh(&mut self, limit: &Limit, priorities: &[Priority], span: &Span) {
        let finite = priorities.iter().filter(|priority| !priority.is_unlimited());
        for priority in finite {
            let weighed = limit.weighed(priority);
            let error = match weighed.build() {
                Ok(policy) if self.on_redis => policy.fits_micros().err().map(|e| e.to_string()),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            if let Some(error) = error {
                let message = format!(
                    "with priority `{}` this is `{}`: {error}",
                    priority.name, weighed.quota
                );
                self.error(span, message);
            }
        }
    }

    /// Points at the part that does not fit.
    fn misfit(&mut self, error: &PolicyError, section: &RuleSection, limit: &Span) {
        let of = |span: Option<&Span>| span.unwrap_or(limit).clone();
        let span = match error {
            PolicyError::Queue => of(section.queue.as_ref().map(|queue| &queue.span)),
            PolicyError::Undelayed => of(section.undelayed.as_ref().map(|places| &places.span)),
            PolicyError::Zone => of(section.zone.as_ref().map(|zone| &zone.span)),
            PolicyError::Consistency { .. } => {
                of(section.consistency.as_ref().map(|one| &one.span))
            }
            _ => limit.clone(),
        };
        self.error(&span, error.to_string());
    }

    /// Sees that no two rules have policies of one name, by which their counters are known.
    pub(super) fn unique(&mut self, name: &Written<String>, tiers: &[Tier], names: &mut Names) {
        let mut own: Vec<&str> =
            tiers.iter().flat_map(|tier| &tier.limits).map(|limit| limit.name.as_str()).collect();
        own.sort_unstable();
        own.dedup();
        for policy in own {
            match names.policies.get(policy) {
                Some(other) if *other != name.value => {
                    let message = format!(
                        "the rules `{}` and `{other}` would both count as `{policy}`; rename one",
                        name.value
                    );
                    self.error(&name.span, message);
                }
                _ => {
                    names.policies.insert(policy.to_owned(), name.value.clone());
                }
            }
        }
    }
}
