//! Times of stress: what `adaptive`, `capacity` and `classes` mean.

mod advice;
mod classes;
mod differences;
mod explained;
mod factor;
mod gates;
mod measured;
mod plans;
mod reload;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use dashpot::{ManualClock, MemoryStore, Percent, PolicyStatus, Vitals};
use dashpot_rules::{Adaptive, Fact, Facts, Rule, RuleSet};
use dashpot_testkit::block_on;

const SECOND: Duration = Duration::from_secs(1);

/// Rules and a store, by one clock that stands still.
struct World {
    rules: RuleSet,
    clock: ManualClock,
    store: MemoryStore,
}

impl World {
    fn new(file: &str) -> Self {
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(clock.clone());
        Self { rules: parse(file, &clock), clock, store }
    }

    fn rule(&self, name: &str) -> &Rule {
        named(&self.rules, name)
    }

    fn adaptive(&self) -> &Arc<Adaptive> {
        self.rules.rules().iter().find_map(Rule::adaptive).expect("a rule that adapts")
    }

    /// Suffers until there is so much of the limits, and no longer.
    fn suffer(&self, percent: u8) {
        self.adaptive().push(Vitals { errors: Some(Percent::new(90)), ..healthy() }, HOUR);
        while self.adaptive().percent() > percent {
            self.clock.advance(SECOND);
        }
        assert_eq!(self.adaptive().percent(), percent);
        self.adaptive().push(between(), HOUR);
    }

    /// Is well until everything is there again.
    fn recover(&self) {
        self.adaptive().push(healthy(), HOUR);
        while self.adaptive().percent() < 100 {
            self.clock.advance(SECOND);
        }
    }

    /// How each limit stands after a request, if it passes.
    fn ask(&self, request: &Facts) -> Result<Vec<Standing>, Vec<Standing>> {
        let plan = self.rules.select(request).plan(request);
        let ruling = block_on(plan.decide(&self.store, &self.store));
        let asked = plan.asked(&ruling);
        let all = asked.iter().flat_map(|one| one.statuses).map(Standing::of).collect();
        if ruling.refusal().is_none() { Ok(all) } else { Err(all) }
    }

    /// How many of the same request pass before one is denied.
    fn passes(&self, request: &Facts) -> usize {
        (0..2000).take_while(|_| self.ask(request).is_ok()).count()
    }
}

/// How a limit stands, short enough to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    name: String,
    limit: u64,
    remaining: u64,
    retry_after: Option<Duration>,
}

impl Standing {
    fn of(status: &PolicyStatus<'_>) -> Self {
        Self {
            name: status.policy().name().to_owned(),
            limit: status.limit(),
            remaining: status.remaining(),
            retry_after: status.retry_after(),
        }
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn parse(file: &str, clock: &ManualClock) -> RuleSet {
    RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}")).with_clock(clock.clone())
}

fn named<'r>(rules: &'r RuleSet, name: &str) -> &'r Rule {
    rules.rules().iter().find(|rule| rule.name() == name).expect("a rule of that name")
}

fn at(path: &str) -> Facts {
    Facts::new().with(Fact::Path, path)
}

/// Below every band.
fn healthy() -> Vitals {
    let none = Some(Percent::new(0));
    Vitals { cpu: none, errors: none, slow: none }
}

/// Within the usual bands, where nothing changes.
fn between() -> Vitals {
    let part = |percent| Some(Percent::new(percent));
    Vitals { cpu: part(60), errors: part(3), slow: part(7) }
}
