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
    /// When what they are of was to end.
    pub(crate) ends: u64,
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

    /// Sets units aside, if there are as many, of what ends then.
    pub(crate) fn set_aside(&self, units: u64, ends: u64) -> Option<Aside> {
        let set_aside = |content: Content| {
            let left = content.left.checked_sub(units)?;
            Some(Content { left, aside: content.aside + units, ..content })
        };
        self.change(set_aside).map(|content| Aside { number: content.number, units, ends })
    }

    /// Whether what was set aside is still in it: it was not emptied since.
    pub(crate) fn has(&self, aside: &Aside) -> bool {
        self.content().number == aside.number
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

    /// Puts units in again of which there were so many. Says how many they are: no more than are missing.
    pub(crate) fn take_back(&self, units: u64, were: u64) -> u64 {
        let back = Cell::new(0);
        self.change(|content| {
            back.set(units.min(were.saturating_sub(content.units())));
            Some(Content { left: content.left + back.get(), ..content })
        });
        back.get()
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{MOST, Purse};

    fn with(units: u64) -> Purse {
        let purse = Purse::default();
        purse.add(units);
        purse
    }

    #[test]
    fn what_is_not_there_is_not_spent() {
        let purse = with(5);
        assert_eq!(purse.spend(3), Some(2));
        assert_eq!(purse.spend(3), None);
        assert_eq!(purse.spend(2), Some(0));
    }

    #[test]
    fn what_is_set_aside_is_nobody_elses_until_it_is_put_back() {
        let purse = with(5);
        let aside = purse.set_aside(4, 0).unwrap();
        assert_eq!((purse.content().left, purse.content().aside), (1, 4));
        assert_eq!(purse.spend(2), None);
        purse.put_back(&aside);
        assert_eq!((purse.content().left, purse.content().aside), (5, 0));
    }

    #[test]
    fn what_was_set_aside_before_it_was_emptied_does_not_come_back() {
        let purse = with(5);
        let [spent, unspent] = [2, 2].map(|units| purse.set_aside(units, 0).unwrap());
        assert_eq!(purse.empty().units(), 5);
        purse.add(7);
        let later = purse.set_aside(3, 0).unwrap();
        purse.put_back(&unspent);
        assert_eq!(purse.spend_aside(&spent), 4);
        assert_eq!((purse.content().left, purse.content().aside), (4, 3));
        purse.put_back(&later);
        assert_eq!(purse.content().units(), 7);
    }

    #[test]
    fn it_holds_no_more_than_fits() {
        let purse = with(MOST - 1);
        let aside = purse.set_aside(10, 0).unwrap();
        purse.add(MOST);
        assert_eq!((purse.content().left, purse.content().aside), (MOST - 10, 10));
        purse.put_back(&aside);
        assert_eq!(purse.content().units(), MOST);
    }

    /// What was spent while the answer was on its way is counted.
    #[test]
    fn what_is_replaced_is_less_by_what_was_spent() {
        let purse = with(10);
        let before = purse.content().units();
        purse.spend(4);
        let aside = purse.set_aside(1, 0).unwrap();
        assert_eq!(purse.replace(before, 20), 20);
        assert_eq!((purse.content().left, purse.content().aside), (15, 1));
        purse.put_back(&aside);
        // Less is to be had than was spent already.
        assert_eq!(purse.replace(20, 2), 4);
        assert_eq!(purse.content().units(), 0);
    }

    /// Threads that spend, set aside and put back, while others fill it and empty it: every unit is found again.
    #[test]
    fn no_unit_is_lost_or_made_between_threads() {
        let (purse, spent, filled, emptied) =
            (Purse::default(), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let count = |to: &AtomicU64, units: u64| to.fetch_add(units, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (purse, spent) = (&purse, &spent);
                scope.spawn(move || {
                    for turn in 0..20_000_u64 {
                        let units = 1 + (turn + thread) % 3;
                        if turn % 2 == 0 {
                            spent.fetch_add(
                                purse.spend(units).map_or(0, |_| units),
                                Ordering::Relaxed,
                            );
                        } else if let Some(aside) = purse.set_aside(units, 0) {
                            purse.put_back(&aside);
                        }
                    }
                });
            }
            scope.spawn(|| {
                for turn in 0..2_000 {
                    purse.add(20);
                    count(&filled, 20);
                    if turn % 100 == 0 {
                        // What is set aside at this moment is taken to be spent.
                        let content = purse.empty();
                        count(&emptied, content.units());
                    }
                }
            });
        });
        let content = purse.content();
        assert_eq!(content.aside, 0);
        let [spent, filled, emptied] = [spent, filled, emptied].map(AtomicU64::into_inner);
        assert_eq!(spent + emptied + content.left, filled);
    }
}
