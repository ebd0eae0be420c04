//! From rules to keys and decisions: who shares a counter with whom, and what is decided.

mod cut;
mod joined;
mod lists;
mod priorities;
mod secrets;
mod shadow;
mod store_errors;
mod tiers;
mod together;

use std::time::Duration;

use dashpot::{ManualClock, MemoryStore};
use dashpot_rules::{Facts, Refusal, RuleSet};
use dashpot_testkit::block_on;

/// Rules, and a store whose time stands still.
struct World {
    rules: RuleSet,
    clock: ManualClock,
    store: MemoryStore,
    local: MemoryStore,
}

/// What came of a request, short enough to compare.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Allowed,
    Limited(String),
    Blocked(String),
    Absent(String),
    Unavailable(String),
}

impl Answer {
    fn of(refusal: Option<Refusal<'_>>) -> Self {
        match refusal {
            None => Self::Allowed,
            Some(Refusal::Limited(rule)) => Self::Limited(rule.name().to_owned()),
            Some(Refusal::Blocked(fact)) => Self::Blocked(fact.to_string()),
            Some(Refusal::Absent(rule)) => Self::Absent(rule.name().to_owned()),
            Some(Refusal::Unavailable(rule)) => Self::Unavailable(rule.name().to_owned()),
        }
    }
}

fn limited(rule: &str) -> Answer {
    Answer::Limited(rule.to_owned())
}

impl World {
    fn new(file: &str) -> Self {
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(clock.clone());
        let local = MemoryStore::with_clock(clock.clone());
        Self { rules: RuleSet::parse(file).unwrap(), clock, store, local }
    }

    fn ask(&self, request: &Facts) -> Answer {
        let plan = self.rules.select(request).plan(request);
        Answer::of(block_on(plan.decide(&self.store, &self.local)).refusal())
    }

    /// How many of the same request pass before one is refused.
    fn passes(&self, request: &Facts) -> usize {
        (0..100).take_while(|_| self.ask(request) == Answer::Allowed).count()
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn denied(&self, rule: &str) -> u64 {
        self.rules.rules().iter().find(|known| known.name() == rule).unwrap().tally().denied()
    }

    fn would_have_denied(&self, rule: &str) -> u64 {
        let rule = self.rules.rules().iter().find(|known| known.name() == rule).unwrap();
        rule.tally().would_have_denied()
    }
}

/// The keys of the enforced rules.
fn keys(rules: &RuleSet, request: &Facts) -> Vec<Vec<u8>> {
    let plan = rules.select(request).plan(request);
    plan.checks().map(|check| check.key.as_bytes().to_vec()).collect()
}

fn ip(address: &str) -> Facts {
    Facts::new().ip(address.parse().unwrap())
}
