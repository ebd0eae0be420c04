//! How many requests this process takes at once: rules with `capacity`, and entering by them.

use std::fmt;
use std::sync::Arc;

use dashpot::{Class, Clock, Gate, GateBuilder, Pass, Shed};

use crate::rule::{Enforced, Priority, Rule};
use crate::tally::Tally;

/// The gate of a rule with `capacity`.
pub(crate) struct Capacity {
    settings: GateBuilder,
    pub(crate) gate: Gate,
}

impl Capacity {
    pub(crate) fn new(settings: GateBuilder, clock: Arc<dyn Clock>) -> Self {
        let gate = settings.clone().clock(clock).build();
        Self { settings, gate }
    }

    /// Goes on with the gate there was, by these settings.
    pub(crate) fn succeed(&mut self, before: &Self) {
        before.gate.adjust(self.settings.clone());
        self.gate = before.gate.clone();
    }

    pub(crate) fn with_clock(&mut self, clock: &Arc<dyn Clock>) {
        *self = Self::new(self.settings.clone(), clock.clone());
    }

    /// `20 at once`, and so on.
    pub(crate) fn summary(&self) -> String {
        self.settings.to_string()
    }
}

impl fmt::Debug for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.gate.fmt(f)
    }
}

/// The gates that a request has to pass, and how it stands with them.
#[derive(Clone, Debug, Default)]
pub struct Gates<'r> {
    pub(crate) rules: Vec<&'r Rule>,
    pub(crate) class: Class,
    /// Whether it passes whatever there is room for.
    pub(crate) is_exempt: bool,
    pub(crate) priority: Option<&'r Priority>,
}

impl<'r> Gates<'r> {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule by which it would be turned away at once: there is neither room nor a place to wait in.
    #[must_use]
    pub fn closed(&self) -> Option<&'r Rule> {
        let is_closed = |rule: &Rule| {
            rule.gate().is_some_and(|gate| !self.passes(rule) && gate.is_closed_to(self.class))
        };
        self.rules.iter().copied().find(|rule| is_closed(rule))
    }

    /// Whether it passes a gate whatever there is room for.
    fn passes(&self, rule: &Rule) -> bool {
        self.is_exempt || is_shadow(rule)
    }

    /// Enters all of them, if there is room in each; else what is to be waited for.
    ///
    /// # Errors
    /// If it has to wait.
    pub fn try_enter(&self) -> Result<Vec<Pass>, Entry> {
        let entry = self.entry();
        let mut entered = Vec::with_capacity(entry.gates.len());
        for gate in &entry.gates {
            match gate.try_enter() {
                Ok(one) => entered.push(one),
                Err(_) => return Err(entry),
            }
        }
        Ok(entry.entered(entered))
    }

    /// What has to be entered, on its own.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let gates = self.rules.iter().filter_map(|rule| {
            Some(GateOf {
                gate: rule.gate()?.clone(),
                tally: rule.tally.clone(),
                class: self.class,
                passes: self.passes(rule),
                is_shadow: is_shadow(rule) && !self.is_exempt,
                number: rule.number,
            })
        });
        Entry {
            gates: gates.collect(),
            priority: self.priority.map(|priority| priority.tally.clone()),
        }
    }

    /// Counts that it was turned away by this rule.
    pub fn shed(&self, rule: &Rule) {
        rule.tally.deny();
        self.count(false);
    }

    /// Counts what came of it, for its priority.
    pub fn count(&self, passed: bool) {
        if let Some(priority) = self.priority {
            priority.tally.count(passed);
        }
    }
}

/// Gates to be entered, one after another.
#[derive(Debug)]
pub struct Entry {
    gates: Vec<GateOf>,
    priority: Option<Arc<Tally>>,
}

#[derive(Debug)]
struct GateOf {
    gate: Gate,
    tally: Arc<Tally>,
    class: Class,
    passes: bool,
    is_shadow: bool,
    number: usize,
}

/// A pass, and whether there was room for it.
type Entered = (Pass, bool);

impl GateOf {
    fn try_enter(&self) -> Result<Entered, Shed> {
        match self.gate.try_enter(self.class) {
            Ok(pass) => Ok((pass, true)),
            Err(_) if self.passes => Ok((self.gate.enter_anyway(), false)),
            Err(shed) => Err(shed),
        }
    }
}

fn is_shadow(rule: &Rule) -> bool {
    rule.enforced == Enforced::Never
}

impl Entry {
    /// Enters all of them, one after another, and waits where there is no room.
    ///
    /// # Errors
    /// If one has turned it away: the place of its rule among the others.
    pub async fn enter(&self) -> Result<Vec<Pass>, usize> {
        let mut entered = Vec::with_capacity(self.gates.len());
        for one in &self.gates {
            let came = match one.try_enter() {
                Ok(came) => Ok(came),
                Err(_) => {
                    // What is waited for here is not the others' doing, whenever they are judged.
                    entered.iter_mut().for_each(|(pass, _): &mut Entered| pass.pause());
                    one.gate.enter(one.class).await.map(|pass| (pass, true))
                }
            };
            match came {
                Ok(came) => entered.push(came),
                Err(_) => {
                    one.tally.deny();
                    self.count(false);
                    return Err(one.number);
                }
            }
        }
        if let Some((_last, others)) = entered.split_last_mut() {
            others.iter_mut().for_each(|(pass, _)| pass.restart());
        }
        Ok(self.entered(entered))
    }

    /// Counts that all were entered.
    fn entered(&self, entered: Vec<Entered>) -> Vec<Pass> {
        for (one, (_, had_room)) in self.gates.iter().zip(&entered) {
            if one.is_shadow && !had_room {
                one.tally.would_deny();
            } else {
                one.tally.allow(&[]);
            }
        }
        self.count(true);
        entered.into_iter().map(|(pass, _)| pass).collect()
    }

    fn count(&self, passed: bool) {
        if let Some(priority) = &self.priority {
            priority.count(passed);
        }
    }
}
