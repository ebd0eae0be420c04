//! Units at hand, spent by many threads at once.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bits say how many units there are.
const BITS: u32 = 24;

/// The most units a purse holds.
pub(crate) const MOST: u64 = (1 << BITS) - 1;

/// Units at hand: those that are left, and those that are set aside for a decision that is not made yet. One word,
/// so that both are always known of the same moment.
///
/// Each time it is emptied it gets another number, by which what was set aside before is told from what came after.
#[derive(Debug, Default)]
pub(crate) struct Purse(AtomicU64);

/// What is in a purse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    number: u16,
    pub(crate) left: u64,
    pub(crate) aside: u64,
}

/// Units that were set aside.
#[derive(Debug)]
#[must_use = "units that are set aside are spent, or put back"]
pub(crate) struct Aside {
    number: u16,
    units: u64,
}

impl Aside {
    /// They were spent, so there is nothing to put back.
    pub(crate) fn spent(&mut self) {
        self.units = 0;
    }
}

impl Content {
    const fn word(self) -> u64 {
        (self.number as u64) << (2 * BITS) | self.aside << BITS | self.left
    }

    #[expect(clippy::cast_possible_truncation, reason = "sixteen bits are left")]
    const fn of(word: u64) -> Self {
        Self {
            number: (word >> (2 * BITS)) as u16,
            aside: (word >> BITS) & MOST,
            left: word & MOST,
        }
    }

    /// All there is.
    pub(crate) const fn units(self) -> u64 {
        self.left + self.aside
    }
}

impl Purse {
    pub(crate) fn content(&self) -> Content {
        Content::of(self.0.load(Ordering::Acquire))
    }

    fn change(&self, change: impl Fn(Content) -> Option<Content>) -> Option<Content> {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let new = change(Content::of(word))?;
            match self.0.compare_exchange_weak(
                word,
                new.word(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(new),
                Err(now) => word = now,
            }
        }
    }

    /// Spends units, if there are as many, and says how many are left.
    pub(crate) fn spend(&self, units: u64) -> Option<u64> {
        let spent =
            |content: Content| Some(Content { left: content.left.checked_sub(units)?, ..content });
        self.change(spent).map(|content| content.left)
    }

    /// Sets units aside, if there are as many.
    pub(crate) fn set_aside(&self, units: u64) -> Option<Aside> {
        let set_aside = |content: Content| {
            let left = content.left.checked_sub(units)?;
            Some(Content { left, aside: content.aside + units, ..content })
        };
        self.change(set_aside).map(|content| Aside { number: content.number, units })
    }

    /// Spends what was set aside, and says how many are left.
    pub(crate) fn spend_aside(&self, aside: &Aside) -> u64 {
        let spent = |content: Content| {
            let aside = content
                .aside
                .checked_sub(aside.units)
                .filter(|_| content.number == aside.number)?;
            Some(Content { aside, ..content })
        };
        // If it was emptied meanwhile, they were counted as spent.
        self.change(spent).unwrap_or_else(|| self.content()).left
    }

    /// Puts back what was set aside. If it was emptied meanwhile, they are gone.
    pub(crate) fn put_back(&self, aside: &Aside) {
        self.change(|content| {
            let rest = content
                .aside
                .checked_sub(aside.units)
                .filter(|_| content.number == aside.number)?;
            Some(Content { aside: rest, left: content.left + aside.units, ..content })
        });
    }

    /// Empties it, and says what was in it. What was set aside is taken to be spent.
    pub(crate) fn empty(&self) -> Content {
        let mut before = Content::default();
        let word = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
            let number = Content::of(word).number.wrapping_add(1);
            Some(Content { number, left: 0, aside: 0 }.word())
        });
        if let Ok(word) = word {
            before = Content::of(word);
        }
        before
    }

    /// Adds units, up to the most that it holds.
    pub(crate) fn add(&self, units: u64) {
        self.change(|content| {
            let left = content.left.saturating_add(units).min(MOST - content.aside);
            Some(Content { left, ..content })
        });
    }

    /// Leaves so many in it, less those that were spent since there were `before`. Says how many they are with those
    /// that were.
    pub(crate) fn replace(&self, before: u64, units: u64) -> u64 {
        let spent = Cell::new(0);
        let replaced = self.change(|content| {
            spent.set(before.saturating_sub(content.units()));
            let left = units.saturating_sub(spent.get()).saturating_sub(content.aside);
            Some(Content { left: left.min(MOST - content.aside), ..content })
        });
        spent.get() + replaced.map_or(0, Content::units)
    }
}
