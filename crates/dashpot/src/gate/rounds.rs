//! A limit that adapts, in rounds: additive increase, multiplicative decrease.

use std::time::Duration;

use super::GateBuilder;
use crate::{Percent, Timestamp};

/// How many are watched at least, unless they are long in coming.
const ENOUGH: u64 = 10;

/// For how many ticks those are waited for.
const PATIENCE: u32 = 10;

/// How many it takes at least, however long that is: one is chance.
const FEW: u64 = 2;

/// So many may be slow.
const SLOW: Percent = Percent::new(10);

/// Whether there are more than a part of all, by more than chance would have it: by two standard deviations of as many as there may be. Few
/// are watched at a time; without this, 4 % of errors would be 10 % of ten every third time. One alone is chance, unless
/// there may be none.
fn is_clearly_more(found: u64, all: u64, part: Percent) -> bool {
    let whole = u128::from(Percent::WHOLE.hundredths());
    let may_be = u128::from(part.hundredths()) * u128::from(all);
    let excess = (u128::from(found) * whole).saturating_sub(may_be);
    let is_chance = found < FEW && may_be > 0;
    !is_chance && excess.saturating_mul(excess) > 4 * whole * may_be
}

/// Those who began together, and how they fared.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u64,
    /// When the first of them began.
    opened: Timestamp,
    /// When the last of them began, if that has been.
    closed: Option<Timestamp>,
    began: u64,
    /// Who answered, or gave up too late for it to be on their own account.
    ended: u64,
    /// Who of those was in time.
    in_time: u64,
    failed: u64,
    /// The most that were in at once.
    peak: u64,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Overload,
    Used,
    Idle,
}

impl Round {
    pub(super) const fn new(number: u64, opened: Timestamp, in_flight: u64) -> Self {
        Self {
            number,
            opened,
            closed: None,
            began: 0,
            ended: 0,
            in_time: 0,
            failed: 0,
            peak: in_flight,
        }
    }

    /// Somebody begins. Those who begin after it was closed belong to none, which is told as 0.
    pub(super) fn begin(&mut self, in_flight: u64, now: Timestamp) -> u64 {
        self.peak = self.peak.max(in_flight);
        if self.closed.is_some() {
            return 0;
        }
        if self.began == 0 {
            self.opened = now;
        }
        self.began += 1;
        self.number
    }

    pub(super) fn answered(&mut self, is_in_time: bool, is_good: bool) {
        self.ended += 1;
        self.in_time += u64::from(is_in_time);
        self.failed += u64::from(!is_good);
    }

    /// Somebody has given up before it could be told how it goes.
    pub(super) const fn abandoned(&mut self) {
        self.began = self.began.saturating_sub(1);
    }

    /// The limit that follows from this round, if it is over.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        limit: u64,
        latency: Duration,
        settings: &GateBuilder,
    ) -> Option<u64> {
        if self.closed.is_none() {
            let (tick, open_for) = (settings.tick, now.since(self.opened));
            let is_long = open_for >= tick.saturating_mul(PATIENCE);
            let enough = if is_long { FEW } else { ENOUGH };
            if open_for >= tick && self.began >= enough {
                self.closed = Some(now);
            }
        }
        let closed = self.closed?;
        let had_time = now.since(closed) > latency;
        if self.ended < self.began && !had_time {
            return None;
        }
        Some(match self.verdict(limit, settings.limit, settings.errors) {
            Verdict::Overload => (limit - limit.div_ceil(10)).max(settings.min),
            Verdict::Used => limit.saturating_add(1).min(settings.max),
            Verdict::Idle => limit,
        })
    }

    /// When there is something to be judged, if nobody comes before.
    pub(super) fn next_turn(&self, latency: Duration, settings: &GateBuilder) -> Timestamp {
        match self.closed {
            Some(closed) => closed.after(latency).after(Duration::from_nanos(1)),
            None if self.began >= ENOUGH => self.opened.after(settings.tick),
            None => self.opened.after(settings.tick.saturating_mul(PATIENCE)),
        }
    }

    /// What came of it, for a limit that is this now and was that at first. Without use it comes back to that, and grows no further: or chance
    /// would make it less and less while there is little to do.
    fn verdict(&self, limit: u64, start: u64, errors: Percent) -> Verdict {
        let slow = self.began.saturating_sub(self.in_time);
        let is_more = |found, part| is_clearly_more(found, self.began, part);
        if is_more(slow, SLOW) || is_more(self.failed, errors) {
            Verdict::Overload
        } else if self.began > 0 && (self.peak >= limit.div_ceil(2) || limit < start) {
            Verdict::Used
        } else {
            Verdict::Idle
        }
    }
}
