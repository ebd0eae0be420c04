//! Which keys are asked about often: roughly, in little memory, however many there are.

use std::sync::atomic::{AtomicU32, Ordering};

use super::slot::Nanos;

/// How many counts there are. Keys that share one are taken for hot sooner, which costs a lease, and no exactness.
const COUNTS: usize = 1 << 14;

/// How long is counted.
const SPAN: Nanos = 500_000_000;

/// How often is often, within the span.
const OFTEN: u32 = 8;

/// How many bits of a count tell it; the others tell the span.
const BITS: u32 = 12;

pub(crate) struct Demand(Box<[AtomicU32]>);

impl Default for Demand {
    fn default() -> Self {
        Self((0..COUNTS).map(|_| AtomicU32::new(0)).collect())
    }
}

impl Demand {
    /// Counts that the key of this hash is asked about, and says whether it often is.
    pub(crate) fn note(&self, hash: u64, now: Nanos) -> bool {
        let place = usize::try_from(hash >> 40).unwrap_or_default() % COUNTS;
        let Some(count) = self.0.get(place) else { return false };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "spans are told apart by their last bits"
        )]
        let span = ((now / SPAN) as u32) << BITS;
        let before = count.load(Ordering::Relaxed);
        let counted = if before >> BITS == span >> BITS { before & ((1 << BITS) - 1) } else { 0 };
        let counted = (counted + 1).min((1 << BITS) - 1);
        // A count that is lost between two threads is found the next time.
        count.store(span | counted, Ordering::Relaxed);
        counted >= OFTEN
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, OFTEN, SPAN};

    #[test]
    fn what_is_asked_about_often_is_noticed_and_forgotten() {
        let demand = Demand::default();
        for time in 0..u64::from(OFTEN) - 1 {
            assert!(!demand.note(7 << 40, time));
        }
        assert!(demand.note(7 << 40, 50));
        assert!(!demand.note(8 << 40, 50), "another key");
        assert!(!demand.note(7 << 40, SPAN + 1), "another time");
    }

    #[test]
    fn what_is_asked_about_seldom_never_is() {
        let demand = Demand::default();
        assert!((0..10_000).all(|time| !demand.note(7 << 40, time * SPAN / 4)));
    }
}
