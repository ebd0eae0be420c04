//! Plans that several requests share.

use std::ptr;

use dashpot::{Decision, Timestamp};

use super::{Ask, Asked, Plan, Ruling};
use crate::rule::Rule;
use crate::secret::shown;

impl<'r> Plan<'r> {
    /// Asks this rule, too, so many times, by a key of these values. Long ones are hashed.
    pub fn ask<V: AsRef<[u8]>>(
        &mut self,
        rule: &'r Rule,
        key: impl IntoIterator<Item = V>,
        times: u64,
    ) {
        let Some(tier) = rule.tiers.first() else { return };
        let start = self.keys.as_key().as_bytes().len();
        for value in key {
            self.keys.push(shown(false, value.as_ref().into()));
        }
        let all = self.keys.as_key().as_bytes();
        let key = start..all.len();
        let enforced = rule.is_enforced(all.get(key.clone()).unwrap_or_default());
        self.asks.push(Ask { rule, policies: &tier.policies, key, enforced, times });
    }

    /// How many rules are asked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.asks.len()
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// Asks what the other does, too: what both ask once, at the higher of their costs. Tells where among the rules that
    /// are asked those of the other are now.
    pub fn join(&mut self, other: &Self) -> Vec<usize> {
        self.refusal = self.refusal.or(other.refusal);
        self.gates.priority = self.gates.priority.or(other.gates.priority);
        for rule in &other.lacking {
            if !self.lacking.iter().any(|known| ptr::eq(*known, *rule)) {
                self.lacking.push(rule);
            }
        }
        let mut places = Vec::new();
        for ask in &other.asks {
            let key = other.key(ask);
            // They may be asked at different factors, if that has changed in between.
            let counts_alike = |known: &Ask<'r>| {
                known.policies.len() == ask.policies.len()
                    && known
                        .policies
                        .iter()
                        .zip(ask.policies.iter())
                        .all(|(one, other)| one.same_counters(other))
            };
            let is_same = |known: &Ask<'r>| {
                ptr::eq(known.rule, ask.rule) && counts_alike(known) && self.key(known) == key
            };
            let known = self.asks.iter().position(is_same);
            places.push(known.unwrap_or(self.asks.len()));
            if let Some(known) = known.and_then(|place| self.asks.get_mut(place)) {
                known.times = known.times.max(ask.times);
                continue;
            }
            let start = self.keys.as_key().as_bytes().len();
            self.keys.append(key);
            let key = start..self.keys.as_key().as_bytes().len();
            self.asks.push(Ask { key, ..ask.clone() });
        }
        places
    }

    /// What came of each rule that is asked, in the order of [`keys`](Self::keys).
    pub fn asked<'d>(&self, ruling: &'d Ruling<'r>) -> Vec<Asked<'d, 'r>> {
        let told = |decision: Option<&'d Decision<'r>>| {
            decision.map_or((&[][..], Timestamp::default()), |one| (one.statuses(), one.at()))
        };
        let (mut rest, decided_at) = told(ruling.decision.as_ref());
        let asked = self.asks.iter().enumerate().map(|(place, ask)| {
            let rehearsed = ruling.rehearsed.iter().find(|(known, _)| *known == place);
            let (mut statuses, mut at) = told(rehearsed.map(|(_, decision)| decision));
            if ask.is_decided(ruling.is_failed)
                && let Some((mine, others)) = rest.split_at_checked(ask.policies.len())
            {
                (statuses, at, rest) = (mine, decided_at, others);
            }
            Asked { rule: ask.rule, enforced: ask.enforced, statuses, at }
        });
        asked.collect()
    }
}
