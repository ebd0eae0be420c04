//! A few slots behind one lock: what a check reads and writes.
//!
//! A group is one or two cache lines. Its first word is a sequence lock; the others are slots, each
//! a *mark* (which key, under which definition; 0 if empty) and the words of its state. Readers
//! write nothing: they copy, and then see whether the sequence is still the same. A writer makes the
//! sequence odd, writes, and makes it even again; if it starts from the sequence its copy was read
//! under, nothing can have changed in between.
//!
//! Whole words throughout, so a torn read is a wrong value at worst, which the sequence gives away.

use std::num::NonZeroU32;

use super::sync::{AtomicU64, Ordering, fence};

/// The lock word: held.
const LOCKED: u64 = 1;
/// The lock word: some key that should be in this group, or came past it, is in a later one.
const SPILLED: u64 = 2;
/// The lock word: what a change adds.
const CHANGE: u64 = 4;

/// The most words a state takes in a slot.
pub(super) const STATE_WORDS: usize = 3;

/// The words of a state, as many as its slot has; the rest are 0.
pub(super) type Words = [u64; STATE_WORDS];

/// How the slots of a table are laid out. Its words are few, so that most keys cost one cache miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Words in a group: one cache line or two.
    pub(super) group: usize,
    /// Words in a slot, with its mark.
    pub(super) slot: usize,
}

impl Shape {
    /// Three slots of two words in a line.
    pub(super) const ONE: Self = Self { group: 8, slot: 2 };
    /// Five slots of three words in two lines, to the last word.
    pub(super) const TWO: Self = Self { group: 16, slot: 3 };
    /// Three slots of four words in two lines.
    pub(super) const THREE: Self = Self { group: 16, slot: 4 };

    /// For states of this many words.
    pub(super) const fn of(state_words: usize) -> Self {
        match state_words {
            0 | 1 => Self::ONE,
            2 => Self::TWO,
            _ => Self::THREE,
        }
    }

    /// Slots in a group, after the lock word.
    pub(super) const fn slots(self) -> usize {
        (self.group - 1) / self.slot
    }
}

/// One group of a page.
#[derive(Clone, Copy)]
pub(super) struct Group<'p> {
    lock: &'p AtomicU64,
    slots: &'p [AtomicU64],
    shape: Shape,
}

/// A slot's content, copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied {
    /// Its place in the group.
    pub(super) slot: usize,
    pub(super) mark: u64,
    pub(super) words: Words,
}

impl<'p> Group<'p> {
    /// The group in these words.
    #[inline]
    pub(super) fn new(words: &'p [AtomicU64], shape: Shape) -> Option<Self> {
        let (lock, slots) = words.split_first()?;
        Some(Self { lock, slots, shape })
    }

    /// Where it is: who holds keys locks groups in this order.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self.lock).addr()
    }

    /// The sequence to read under, if nobody is writing.
    #[inline]
    pub(super) fn sequence(&self) -> Option<u64> {
        let sequence = self.lock.load(Ordering::Acquire);
        (sequence & LOCKED == 0).then_some(sequence)
    }

    /// Whether nothing changed since the sequence was read.
    #[inline]
    pub(super) fn is_still(&self, sequence: u64) -> bool {
        is_still(self.lock, sequence)
    }

    /// Locks the group if nothing changed since the sequence was read.
    #[inline]
    pub(super) fn try_lock(self, sequence: u64) -> Option<LockedGroup<'p>> {
        // Made only then: to drop one is to unlock.
        try_lock(self.lock, sequence).then(|| LockedGroup { group: self, sequence })
    }

    /// Whether a key that is not here may be in the next group.
    #[inline]
    pub(super) fn is_spilled(sequence: u64) -> bool {
        sequence & SPILLED != 0
    }

    /// The slot with this mark, whatever its last bits say.
    #[inline]
    pub(super) fn find(&self, mark: u64, ignoring: u64) -> Option<Copied> {
        let is_it = |copied: &Copied| (copied.mark ^ mark) & !ignoring == 0;
        self.copies().find(is_it)
    }

    /// Looks for a slot with this very mark, and copies its state of so many words.
    #[inline]
    pub(super) fn glance<const WORDS: usize>(
        self,
        sequence: u64,
        mark: u64,
    ) -> Option<Glance<'p, WORDS>> {
        // Which slot it is, nobody can foresee: a branch for each would be missed half of the time. So
        // there is a bit for each.
        let slots = self.slots.chunks_exact(const { Shape::of(WORDS).slot });
        let mut hits = 0_u32;
        for (index, slot) in slots.enumerate() {
            hits |= u32::from(slot.first()?.load(Ordering::Relaxed) == mark) << index;
        }
        let index = NonZeroU32::new(hits)?.trailing_zeros() as usize;
        let start = index * const { Shape::of(WORDS).slot } + 1;
        let words: &[AtomicU64; WORDS] = self.slots.get(start..)?.first_chunk()?;
        let state = std::array::from_fn(|index| match words.get(index) {
            Some(word) => word.load(Ordering::Relaxed),
            None => 0,
        });
        Some(Glance { lock: self.lock, sequence, words, state })
    }

    /// All slots, empty ones too.
    pub(super) fn copies(&self) -> impl Iterator<Item = Copied> + use<'p> {
        let shape = self.shape;
        self.slots.chunks_exact(shape.slot).enumerate().map(|(slot, words)| {
            let mut words = words.iter().map(|word| word.load(Ordering::Relaxed));
            let mark = words.next().unwrap_or(0);
            Copied { slot, mark, words: std::array::from_fn(|_| words.next().unwrap_or(0)) }
        })
    }
}

/// A slot's state, copied; good while the group's sequence is still the same.
#[derive(Clone, Copy)]
pub(super) struct Glance<'p, const WORDS: usize> {
    lock: &'p AtomicU64,
    sequence: u64,
    words: &'p [AtomicU64; WORDS],
    pub(super) state: [u64; WORDS],
}

impl<const WORDS: usize> Glance<'_, WORDS> {
    /// Whether nothing changed since it was copied.
    #[inline]
    pub(super) fn is_still(&self) -> bool {
        is_still(self.lock, self.sequence)
    }

    /// Where its group is.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self.lock).addr()
    }

    /// Another state in its place.
    #[inline(always)]
    pub(super) fn change<'g>(&'g self, state: &'g [u64; WORDS]) -> Change<'g> {
        Change { lock: self.lock, sequence: self.sequence, words: self.words, state }
    }

    /// Writes another state, if nothing changed since it was copied.
    #[inline]
    pub(super) fn replace(&self, state: [u64; WORDS]) -> bool {
        let is_locked = try_lock(self.lock, self.sequence);
        if is_locked {
            write(self.lock, self.sequence, self.words, &state);
        }
        is_locked
    }
}

/// A slot's state that is to be another.
pub(super) struct Change<'g> {
    lock: &'g AtomicU64,
    sequence: u64,
    words: &'g [AtomicU64],
    state: &'g [u64],
}

/// Makes all these changes, if nothing changed since what they are of was copied. Nobody is waited for, so groups need not be
/// locked in the order of their addresses: two calls that are in each other's way every time hold their keys in the end, in
/// order.
#[inline(always)]
pub(super) fn make_all<const N: usize>(changes: &[Change<'_>; N]) -> bool {
    let try_lock = |change: &&Change<'_>| try_lock(change.lock, change.sequence);
    let locked = changes.iter().take_while(try_lock).count();
    if locked < N {
        for change in changes.iter().take(locked) {
            // As if nothing had happened.
            change.lock.store(change.sequence, Ordering::Release);
        }
        return false;
    }
    for change in changes {
        write(change.lock, change.sequence, change.words, change.state);
    }
    true
}

/// A [`Glance`] of however many words, to be replaced together with others.
#[derive(Clone, Copy)]
pub(super) struct AnyGlance<'p> {
    lock: &'p AtomicU64,
    sequence: u64,
    words: &'p [AtomicU64],
    pub(super) state: Words,
}

impl<'p, const WORDS: usize> From<Glance<'p, WORDS>> for AnyGlance<'p> {
    #[inline(always)]
    fn from(glance: Glance<'p, WORDS>) -> Self {
        let Glance { lock, sequence, words, state: known } = glance;
        let mut state = Words::default();
        for (word, value) in state.iter_mut().zip(known) {
            *word = value;
        }
        Self { lock, sequence, words, state }
    }
}

impl AnyGlance<'_> {
    /// Where its group is.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self.lock).addr()
    }

    /// How many words it has.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether nothing changed since it was copied.
    #[inline(always)]
    pub(super) fn is_still(&self) -> bool {
        is_still(self.lock, self.sequence)
    }

    /// Another state in its place.
    #[inline(always)]
    pub(super) fn change<'g>(&'g self, state: &'g Words) -> Change<'g> {
        Change { lock: self.lock, sequence: self.sequence, words: self.words, state }
    }
}

/// Writes a slot's state, and lets others in again.
#[inline(always)]
fn write(lock: &AtomicU64, sequence: u64, words: &[AtomicU64], state: &[u64]) {
    for (word, &value) in words.iter().zip(state) {
        word.store(value, Ordering::Relaxed);
    }
    lock.store(sequence.wrapping_add(CHANGE), Ordering::Release);
}

/// Whether nothing changed since the sequence was read.
#[inline]
fn is_still(lock: &AtomicU64, sequence: u64) -> bool {
    // Everything read so far is read before the sequence is read again.
    fence(Ordering::Acquire);
    lock.load(Ordering::Relaxed) == sequence
}

/// Locks a group if nothing changed since the sequence was read.
#[inline]
fn try_lock(lock: &AtomicU64, sequence: u64) -> bool {
    let held = sequence | LOCKED;
    let before = lock.compare_exchange(sequence, held, Ordering::Acquire, Ordering::Relaxed);
    // Nothing written from now on is seen by anybody who does not see the lock.
    fence(Ordering::Release);
    before.is_ok()
}

/// A group nobody else reads or writes. Dropping it lets others in.
pub(super) struct LockedGroup<'p> {
    group: Group<'p>,
    /// The sequence to go on from, with what is noted in it.
    sequence: u64,
}

impl<'p> LockedGroup<'p> {
    pub(super) fn group(&self) -> Group<'p> {
        self.group
    }

    /// Notes that a key came past this group.
    pub(super) fn spill(&mut self) {
        self.sequence |= SPILLED;
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Writes a slot; a mark of 0 empties it.
    #[inline]
    pub(super) fn write(&self, slot: usize, mark: u64, words: Words) {
        let shape = self.group.shape;
        let slots = self.group.slots.get(slot * shape.slot..).unwrap_or_default();
        for (word, value) in slots.iter().take(shape.slot).zip([mark].into_iter().chain(words)) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Keeps the group locked for good: its page is retired.
    pub(super) fn retire(self) {
        std::mem::forget(self);
    }

    /// Empties a group of a retired page and opens it again, as another than it was.
    pub(super) fn renew(group: Group<'p>) {
        let before = group.lock.load(Ordering::Relaxed);
        let sequence = before & !(LOCKED | SPILLED);
        let renewed = Self { group, sequence };
        for slot in 0..group.shape.slots() {
            renewed.write(slot, 0, [0; STATE_WORDS]);
        }
    }
}

impl Drop for LockedGroup<'_> {
    #[inline]
    fn drop(&mut self) {
        self.group.lock.store(self.sequence.wrapping_add(CHANGE), Ordering::Release);
    }
}
