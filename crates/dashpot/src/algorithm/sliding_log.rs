//! Sliding log: every admission of the last window, remembered.

use smallvec::SmallVec;

use super::{Enforce, Packed, Verdict};
use crate::{Retry, SLIDING_LOG_MAX, Timestamp};

/// The most units a log remembers. All that ever count are the newest units up to the limit, and
/// those that would be the newest if some of them were given back; what can be given back was
/// admitted within the limit. The limit may change, but no limit is larger than this one, so older
/// units than twice as many change no answer, ever. Only debt can pile up so far.
const MOST: u64 = 2 * SLIDING_LOG_MAX;

/// How many entries a log has that is to be short.
const COARSE: usize = 8;

#[derive(Debug)]
pub(super) struct SlidingLog {
    pub(super) limit: u64,
    pub(super) window: u64,
}

/// The admissions, oldest first, those of one instant in one entry. Its time never goes back: if
/// the clock does, everything goes on happening at the instant of the newest entry.
///
/// Units are numbered as they come, so that any of them is found by bisection. Those a log remembers
/// are counted from the last one that it has forgotten.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// A single one is not on the heap, because that is what slots hold.
    entries: SmallVec<[Entry; 1]>,
    /// How many of them are forgotten.
    gone: u32,
    /// The number of the last unit that is.
    before: u16,
}

/// All units admitted at one instant. Most of what a log takes is its entries, so they are in short parts:
/// ten bytes, where two whole numbers would take sixteen.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: [u16; 4],
    /// The number of the last of them. It begins anew after 65 535.
    upto: u16,
}

// There are never more at once: as many as are remembered, and as many again for a moment.
const _: () = assert!(2 * MOST < 1 << u16::BITS);

impl Clone for Log {
    /// With no more room than it takes.
    fn clone(&self) -> Self {
        Self { entries: SmallVec::from_slice(self.entries()), gone: 0, before: self.before }
    }
}

impl Entry {
    fn new(at: u64, upto: u16) -> Self {
        let [a, b, c, d, e, f, g, h] = at.to_ne_bytes();
        let halves = [[a, b], [c, d], [e, f], [g, h]];
        Self { at: halves.map(u16::from_ne_bytes), upto }
    }

    fn at(self) -> u64 {
        let [[a, b], [c, d], [e, f], [g, h]] = self.at.map(u16::to_ne_bytes);
        u64::from_ne_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Log {
    /// The log of these moments, each with how many units there are up to it. Those that are not in
    /// order are left out.
    pub(super) fn new(entries: &[(u64, u64)]) -> Self {
        let mut log = Self::default();
        for &(at, upto) in entries {
            let last = log.entries.last().map_or(0, |last| last.at());
            if upto <= MOST && at >= last && upto >= log.units() {
                log.push(at, upto);
            }
        }
        log
    }

    /// Those that are not forgotten.
    fn entries(&self) -> &[Entry] {
        self.entries.get(self.gone as usize..).unwrap_or_default()
    }

    /// Whether it is a matter of a few words.
    pub(super) fn is_small(&self) -> bool {
        self.entries().len() <= 1
    }

    /// The same in a few entries: units of several are all as late as the last of them.
    pub(super) fn coarse(&self) -> Self {
        let mut coarse = Self { before: self.before, ..Self::default() };
        let most = self.entries().len().div_ceil(COARSE).max(1);
        coarse.entries.extend(self.entries().chunks(most).filter_map(<[Entry]>::last).copied());
        coarse
    }

    /// All entries: each one's moment, and how many units were admitted then.
    pub(super) fn save(&self) -> SmallVec<[u64; 3]> {
        let mut before = 0;
        let entry = |entry: &Entry| {
            let upto = self.upto(entry);
            let units = upto - before;
            before = upto;
            [entry.at(), units]
        };
        self.entries().iter().flat_map(entry).collect()
    }

    /// The log of these entries; `None` if they are none.
    pub(super) fn restore(words: &[u64]) -> Option<Self> {
        let mut log = Self::default();
        for entry in words.chunks(2) {
            let &[at, units] = entry else {
                return None;
            };
            let upto = log.units().checked_add(units)?;
            let in_order = log.entries.last().is_none_or(|last| last.at() < at);
            if !in_order || upto > MOST || at > Timestamp::MAX.as_nanos() {
                return None;
            }
            log.push(at, upto);
        }
        Some(log)
    }

    fn moment(&self, now: u64) -> u64 {
        self.entries().last().map_or(now, |newest| newest.at().max(now))
    }

    /// The number of an entry's last unit.
    fn upto(&self, entry: &Entry) -> u64 {
        entry.upto.wrapping_sub(self.before).into()
    }

    /// The number of the last unit, which is how many there are.
    pub(super) fn units(&self) -> u64 {
        self.entries().last().map_or(0, |entry| self.upto(entry))
    }

    /// The number of the last unit before the entry at this index.
    fn before(&self, index: usize) -> u64 {
        let before = index.checked_sub(1).and_then(|index| self.entries().get(index));
        before.map_or(0, |entry| self.upto(entry))
    }

    fn push(&mut self, at: u64, upto: u64) {
        if self.entries.len() == self.entries.capacity() {
            // Where a good part is forgotten, others are moved there: each of them seldom.
            if self.gone as usize > self.entries.len() / 4 {
                self.entries.drain(..self.gone as usize);
                self.gone = 0;
            } else {
                // By a quarter, not by all.
                self.entries.reserve_exact((self.entries.len() / 4).max(1));
            }
        }
        self.entries.push(Entry::new(at, self.number(upto)));
    }

    /// A number as entries have it.
    fn number(&self, unit: u64) -> u16 {
        // There are not so many that it would not fit.
        self.before.wrapping_add(u16::try_from(unit).unwrap_or(u16::MAX))
    }

    /// Forgets the oldest units, up to this number.
    fn forget(&mut self, upto: u64) {
        let gone = self.entries().iter().take_while(|entry| self.upto(entry) <= upto).count();
        self.before = self.number(upto);
        self.gone += u32::try_from(gone).unwrap_or(0);
        if self.gone as usize == self.entries.len() {
            self.entries.clear();
            self.gone = 0;
        }
    }
}

impl SlidingLog {
    /// How many of the entries have left the window. They are in order, so the oldest have.
    fn expired(&self, log: &Log, now: u64) -> usize {
        let now = log.moment(now);
        let has_left = |entry: &Entry| entry.at().saturating_add(self.window) <= now;
        // Mostly none has, because those that had were forgotten when others came.
        match log.entries() {
            [oldest, ..] if has_left(oldest) => log.entries().partition_point(has_left),
            _ => 0,
        }
    }

    /// Nanoseconds until the unit of this number leaves the window.
    fn leaves_after(&self, log: &Log, unit: u64, now: u64) -> u64 {
        let index = log.entries().partition_point(|entry| log.upto(entry) < unit);
        let admitted = log.entries().get(index).map_or(0, |entry| entry.at());
        admitted.saturating_add(self.window).saturating_sub(now)
    }

    fn live(&self, log: &Log, now: u64) -> u64 {
        log.units() - log.before(self.expired(log, now))
    }
}

impl Enforce for SlidingLog {
    type State = Log;

    fn verdict(&self, log: &Log, now: u64, cost: u64) -> Verdict {
        let expired = log.before(self.expired(log, now));
        let wanted = (log.units() - expired).saturating_add(cost);
        let too_many = wanted.saturating_sub(self.limit);
        if too_many == 0 {
            return Verdict::ALLOW;
        }
        // It passes when that many of the oldest live units have left, which is at most all: what
        // is asked for fits the limit.
        let leaver = expired.saturating_add(too_many);
        Verdict::Deny(Retry::After(self.leaves_after(log, leaver, now)))
    }

    fn charge(&self, log: &mut Log, now: u64, units: u64) {
        let at = log.moment(now);
        log.forget(log.before(self.expired(log, now)));
        let upto = log.units() + units.min(MOST);
        // The same instant; or all of the newest entry was given back.
        let kept = log.before(log.entries().len().saturating_sub(1));
        let is_newest = |newest: &Entry| newest.at() == at || log.upto(newest) == kept;
        if log.entries().last().is_some_and(is_newest) {
            log.entries.pop();
        }
        log.push(at, upto);
        if upto > MOST {
            log.forget(upto - MOST);
        }
    }

    fn credit(&self, log: &mut Log, _now: u64, charged_at: u64, units: u64) {
        let index = log.entries().partition_point(|entry| entry.at() < charged_at);
        let Some(entry) = log.entries().get(index).filter(|entry| entry.at() == charged_at) else {
            return;
        };
        let charged = log.upto(entry) - log.before(index);
        let given_back = units.min(charged);
        let is_newest = index + 1 == log.entries().len();
        let index = index + log.gone as usize;
        // The newest entry stays even if nothing is left of it: it tells the time.
        if given_back == charged && !is_newest {
            log.entries.remove(index);
        }
        for entry in log.entries.iter_mut().skip(index) {
            // Not more than was charged, which is a short number.
            entry.upto = entry.upto.wrapping_sub(u16::try_from(given_back).unwrap_or(0));
        }
    }

    fn remaining(&self, log: &Log, now: u64) -> u64 {
        self.limit.saturating_sub(self.live(log, now))
    }

    fn reset_after(&self, log: &Log, now: u64) -> u64 {
        match self.live(log, now) {
            0 => 0,
            _ => self.leaves_after(log, log.units(), now),
        }
    }

    fn is_idle(&self, log: &Log, now: u64) -> bool {
        self.live(log, now) == 0
    }
}

/// A log of one entry is its moment and its units; more are no matter of a few words.
impl Packed for Log {
    fn pack(&self, words: &mut [u64]) -> bool {
        match (self.entries(), words) {
            ([], words) => {
                words.fill(0);
                true
            }
            ([entry], [at, units, ..]) => {
                [*at, *units] = [entry.at(), self.units()];
                true
            }
            _ => false,
        }
    }

    fn unpack(words: &[u64]) -> Self {
        let mut log = Self::default();
        if let [at, units, ..] = *words
            && (at, units) != (0, 0)
        {
            log.push(at, units);
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: SlidingLog = SlidingLog { limit: 3, window: 100 };

    #[test]
    fn one_instant_takes_one_entry() {
        let mut log = Log::default();
        LOG.charge(&mut log, 5, 1);
        LOG.charge(&mut log, 5, 2);
        assert_eq!(log.entries().len(), 1);
        assert_eq!(LOG.live(&log, 104), 3);
        assert_eq!(LOG.live(&log, 105), 0);
    }

    #[test]
    fn entries_that_left_are_dropped() {
        let mut log = Log::default();
        for now in (0..100_000).step_by(50) {
            LOG.charge(&mut log, now, 1);
        }
        assert_eq!(log.entries().len(), 2);
    }

    /// A key lives long: its units are numbered past what an entry keeps of a number.
    #[test]
    fn numbers_go_on_where_their_second_half_begins_anew() {
        let mut log = Log { before: u16::MAX - 1, ..Log::default() };
        for now in 0..3 {
            LOG.charge(&mut log, now, 1);
            assert_eq!(log.units(), now + 1);
        }
        assert_eq!(LOG.verdict(&log, 3, 2), Verdict::Deny(Retry::After(98)));
        LOG.credit(&mut log, 3, 1, 1);
        assert_eq!((log.entries().len(), LOG.remaining(&log, 3)), (2, 1));
        assert_eq!((LOG.remaining(&log, 100), LOG.reset_after(&log, 100)), (2, 2));
        LOG.charge(&mut log, 102, 3);
        assert_eq!((log.entries().len(), log.units()), (1, 3));
        assert_eq!(log.before, 0);
    }

    /// A short log grants nothing that the whole one does not, and has not forgotten anything.
    #[test]
    fn in_a_few_entries_it_is_stricter() {
        let limit = SlidingLog { limit: 1000, window: 1000 };
        let mut log = Log { before: u16::MAX - 300, ..Log::default() };
        for now in 0..=1300 {
            limit.charge(&mut log, now, 1 + now % 2);
        }
        let coarse = log.coarse();
        assert_eq!((coarse.entries().len(), coarse.units()), (COARSE, log.units()));
        assert_eq!(limit.reset_after(&coarse, 1300), limit.reset_after(&log, 1300));
        for now in 1300..2400 {
            assert!(limit.remaining(&coarse, now) <= limit.remaining(&log, now), "{now}");
        }
        assert_eq!(limit.remaining(&coarse, 2300), 1000);
        let few = Log::new(&[(1, 1), (2, 3)]);
        assert_eq!(few.coarse().save(), few.save());
        assert!(Log::default().coarse().entries().is_empty());
    }

    #[test]
    fn debt_takes_no_more_room_than_twice_the_largest_limit() {
        let mut log = Log::default();
        let forever = SlidingLog { limit: 3, window: u64::MAX };
        for now in 0..3 * SLIDING_LOG_MAX {
            forever.charge(&mut log, now, 1);
        }
        assert_eq!(log.entries().len() as u64, MOST);
        forever.charge(&mut log, 3 * SLIDING_LOG_MAX, u64::MAX);
        assert_eq!((log.entries().len(), forever.live(&log, 3 * SLIDING_LOG_MAX)), (1, MOST));
    }

    #[test]
    fn a_clock_that_goes_back_keeps_the_log_in_order() {
        let mut log = Log::default();
        LOG.charge(&mut log, 50, 1);
        LOG.charge(&mut log, 20, 1);
        assert_eq!(log.entries().len(), 1, "as if at 50");
        LOG.charge(&mut log, 60, 1);
        assert_eq!(LOG.verdict(&log, 40, 1), Verdict::Deny(Retry::After(110)));
        assert_eq!(LOG.reset_after(&log, 40), 120);
        LOG.credit(&mut log, 70, 60, 1);
        assert_eq!((LOG.remaining(&log, 70), LOG.reset_after(&log, 70)), (1, 80));
    }
}
