//! A gate in the making.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Gate;
use crate::{Class, Clock, Percent, SystemClock};

/// A [`Gate`] in the making.
#[derive(Clone)]
#[must_use]
pub struct GateBuilder {
    pub(super) limit: u64,
    pub(super) latency: Option<Duration>,
    pub(super) errors: Percent,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) tick: Duration,
    pub(super) places: u64,
    pub(super) wait: Duration,
    /// What part of the limit each class may fill, by their order.
    parts: [Percent; Class::ALL.len()],
    clock: Option<Arc<dyn Clock>>,
}

impl GateBuilder {
    pub(super) fn new(limit: u64) -> Self {
        let limit = limit.max(1);
        Self {
            limit,
            latency: None,
            errors: Percent::new(5),
            min: 1,
            max: limit.saturating_mul(10),
            tick: Duration::from_millis(100),
            places: limit,
            wait: Duration::from_secs(1),
            parts: [Percent::WHOLE; Class::ALL.len()],
            clock: None,
        }
    }

    /// Adapts the limit, so that most take no longer than this until they answer.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }

    /// How many may fail before that is overload, too; 5 %.
    pub fn errors(mut self, errors: Percent) -> Self {
        self.errors = errors;
        self
    }

    /// The least the limit becomes; 1.
    pub fn min(mut self, min: u64) -> Self {
        self.min = min.max(1);
        self
    }

    /// The most the limit becomes; ten times what it is at first.
    pub fn max(mut self, max: u64) -> Self {
        self.max = max.max(1);
        self
    }

    /// For how long those who begin are watched together; 100 ms.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// How many may wait; as many as may be in at first.
    pub fn places(mut self, places: u64) -> Self {
        self.places = places;
        self
    }

    /// How long they may wait; a second.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// What part of the limit a class may fill, at least one. The rest is left to those above it; who is below may fill no more.
    pub fn part(mut self, class: Class, part: Percent) -> Self {
        if let Some(known) = self.parts.get_mut(class as usize) {
            *known = part;
        }
        self
    }

    /// Whose time counts; the machine's.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The gate.
    #[must_use]
    pub fn build(mut self) -> Gate {
        let clock = self.clock.take().unwrap_or_else(|| Arc::new(SystemClock::default()));
        Gate::with(self, clock)
    }

    /// How many of a class may be in, of so many in all.
    pub(super) fn part_of(&self, class: Class, limit: u64) -> u64 {
        let own_and_above = self.parts.iter().skip(class as usize).min();
        let part = own_and_above.copied().unwrap_or(Percent::WHOLE);
        part.part_of(limit).clamp(1, limit.max(1))
    }
}

/// `20 at once, adapting to 250ms between 1 and 200, 20 may wait for 1s`.
impl fmt::Display for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at once", self.limit)?;
        if let Some(latency) = self.latency {
            let Self { min, max, errors, tick, .. } = self;
            write!(
                f,
                ", adapting to {latency:?} and {errors} of errors between {min} and {max}, every {tick:?}"
            )?;
        }
        write!(f, ", {} may wait for {:?}", self.places, self.wait)
    }
}

impl fmt::Debug for GateBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = f.debug_struct("GateBuilder");
        builder.field("limit", &self.limit).field("latency", &self.latency);
        builder.field("places", &self.places).field("wait", &self.wait).finish_non_exhaustive()
    }
}
