//! When to ask Redis, for what, and what its answer means. Whoever asks has the right to: one at a time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use dashpot::{Algorithm, Timestamp};

use super::{FIRST, LARGEST, LASTS, Nanos, Reply, Request, Slot, TROUBLE, Terms, nanos, share};
use crate::failure::Failure;
use crate::question;

/// Somebody who waits for units, until it is dropped.
#[must_use = "who does not wait is not waited for"]
pub(crate) struct Waiting<'s> {
    slot: &'s Slot,
    units: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slot.waiting.fetch_sub(self.units, Ordering::Relaxed);
    }
}

impl Slot {
    /// Waits for an answer, and for so many units of it.
    pub(crate) fn wait_for(&self, units: u64) -> Waiting<'_> {
        self.waiting.fetch_add(units, Ordering::Relaxed);
        Waiting { slot: self, units }
    }

    /// Claims the right to ask: one at a time.
    pub(crate) fn claim(&self) -> bool {
        !self.is_asking.load(Ordering::Relaxed)
            && !self.is_gone()
            && !self.is_asking.swap(true, Ordering::AcqRel)
    }

    /// Gives the right to ask back.
    pub(crate) fn let_go(&self) {
        self.is_asking.store(false, Ordering::Release);
        self.answered.notify_waiters();
    }

    /// Is not used any more. Says what to tell Redis, if there is anything: it comes from who has the right to ask.
    pub(crate) fn leave(&self, now: Nanos) -> Option<Request> {
        self.is_gone.store(true, Ordering::Release);
        let units = self.terms().units;
        let request = self.farewell(now);
        let owes = if self.is_leased() { units > 0 } else { request.spent > 0 };
        if !owes {
            self.answered.notify_waiters();
        }
        owes.then_some(request)
    }

    /// Drops what is at hand, and is not used any more: it was reset.
    pub(crate) fn drop_all(&self) {
        self.is_gone.store(true, Ordering::Release);
        self.purse.empty();
        self.answered.notify_waiters();
    }

    /// What to ask now, having the right to: for more, of which somebody waits for so many. There are so many
    /// instances.
    pub(crate) fn request(&self, now: Nanos, units: u64, instances: u64) -> Request {
        let instances = instances.max(1);
        let terms = self.terms();
        let is_live = now < terms.ends;
        // What cannot be spent any more is not kept, so nobody may spend it from here on.
        let content =
            if is_live || !self.is_leased() { self.purse.content() } else { self.purse.empty() };
        let kept = if is_live { content.units() } else { 0 };
        // What is set aside may be spent.
        let unspent = if is_live { content.units() } else { content.left };
        let need = if is_live { units.saturating_sub(content.left) } else { units };
        let share = share(&self.policy, instances).clamp(1, LARGEST);
        let size = self.size.load(Ordering::Relaxed).max(self.waiting.load(Ordering::Relaxed));
        let want = size.min(share.saturating_sub(kept));
        let spent = terms.units.saturating_sub(unspent);
        let (want, number) = (want.max(need), self.number());
        Request { kept, spent, need, want, asked: now, number, instances }
    }

    fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What to ask when it is not needed any more, having the right to: nothing, and everything comes back.
    fn farewell(&self, now: Nanos) -> Request {
        let units = self.terms().units;
        let content = self.purse.empty();
        let spent = units.saturating_sub(content.left);
        let (number, instances) = (self.number(), 1);
        Request { kept: 0, spent, need: 0, want: 0, asked: now, number, instances }
    }

    /// Whether something was counted that is not told yet.
    pub(crate) fn owes(&self) -> bool {
        self.terms().units > self.purse.content().left
    }

    /// Takes notice of an answer, and gives the right to ask back.
    pub(crate) fn hear(&self, request: &Request, now: Nanos, reply: Reply) {
        let Reply { at, recalled, is_known, units, is_short, lasts, is_cut } = reply;
        let before = self.terms();
        // By this machine's clock, from before it was asked; a little less, because clocks differ.
        let lasts = nanos(lasts);
        let is_blocked = recalled.is_blocked(at);
        let ends = request.asked.saturating_add(lasts - lasts / 16);
        // What is at hand of a blocked key is given back with the next call.
        let ends = if is_blocked { 0 } else { ends };
        if !is_short && request.want > 0 && before.heard > 0 {
            self.resize(now.saturating_sub(before.heard));
        }
        if request.kept > 0 && !is_known {
            self.purse.empty();
        }
        let all = if self.is_leased() {
            if is_known { request.kept.saturating_add(units) } else { units }
        } else {
            self.purse.replace(request.kept, units)
        };
        let ask_at = request.asked.saturating_add(self.pace);
        self.terms.store(Arc::new(Terms {
            units: all,
            ends,
            low: all / 4,
            heard: now,
            at,
            recalled,
            ask_at: if is_short { ask_at } else { 0 },
            // A wait that was told does not become longer because something else was asked.
            refuses_until: if is_short && request.need > 0 { ask_at } else { before.refuses_until },
            floor: (request.instances - 1).max(self.policy.limit() / 64),
            closes: if is_cut { request.asked.saturating_add(lasts) } else { Nanos::MAX },
            refused: OnceLock::new(),
        }));
        // Only now: before, they would have been taken for those of the lease that was.
        if self.is_leased() {
            self.purse.add(units);
        }
        self.settle(None);
    }

    /// The next lease is to last neither too long nor too short.
    fn resize(&self, lasted: Nanos) {
        let size = self.size.load(Ordering::Relaxed);
        let size = match lasted {
            lasted if lasted < LASTS[0] / 8 => size.saturating_mul(4),
            lasted if lasted < LASTS[0] => size.saturating_mul(2),
            lasted if lasted > LASTS[1] => size / 2,
            _ => size,
        };
        self.size.store(size.clamp(FIRST, LARGEST), Ordering::Relaxed);
    }

    /// Redis has heard of what was counted here.
    pub(crate) fn told(&self, spent: u64) {
        let before = self.terms();
        let units = before.units.saturating_sub(spent);
        self.terms.store(Arc::new(Terms { units, ..Terms::clone(&before) }));
    }

    /// There was no answer. What is at hand can be spent on.
    pub(crate) fn fail(&self, now: Nanos, failure: Failure) {
        self.settle(Some((now, failure)));
    }

    fn settle(&self, trouble: Option<(Nanos, Failure)>) {
        *self.trouble.lock() = trouble;
        self.let_go();
    }

    /// Why there was no answer a moment ago.
    pub(crate) fn trouble(&self, now: Nanos) -> Option<Failure> {
        let trouble = self.trouble.lock();
        trouble
            .as_ref()
            .filter(|(at, _)| now.saturating_sub(*at) < TROUBLE)
            .map(|(_, why)| why.clone())
    }

    /// Takes units back that were spent here since Redis last answered, having the right to ask: as if they had never
    /// been spent. Says how many.
    pub(crate) fn take_back(&self, now: Nanos, units: u64, charged_at: Timestamp) -> u64 {
        let terms = self.terms();
        let window = |at: Timestamp| match self.policy.algorithm() {
            Algorithm::SlidingWindow => {
                Some(at.as_nanos() / question::length(&self.policy).saturating_mul(1000).max(1))
            }
            _ => self.policy.window_at(at).map(|window| window.start),
        };
        // If it did not answer, it may have heard that they were spent.
        let has_answered = self.trouble.lock().is_none();
        let is_live = !self.is_gone() && now < terms.ends;
        if !has_answered || !is_live || window(charged_at) != window(terms.at) {
            return 0;
        }
        self.purse.take_back(units, terms.units)
    }
}
