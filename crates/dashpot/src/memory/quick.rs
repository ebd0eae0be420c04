//! Up to four checks on keys that have slots, of which nothing is special: decided without holding
//! anything, and written in one go if nothing changed meanwhile. A single check on a new key, or on one
//! whose state is kept aside, goes a short way, too.

use std::{ptr, slice};

use super::MemoryStore;
use super::directory::Spot;
use super::group::{AnyGlance, Glance, Words, make_all};
use super::home::Home;
use super::page::{DEFINITION_BITS, Found, Look, Search};
use super::sync::stand_back;
use super::table::Table;
use crate::algorithm::{Judged, Short, Verdict};
use crate::{Check, Decision, Policy, Standing, Timestamp};

/// How often a check tries to get by without holding its key.
const ATTEMPTS: u32 = 4;

impl MemoryStore {
    /// Decides a single check, quickly if its key has a slot and nothing is special about it.
    // Decisions are returned from where they are made, and not wrapped and unwrapped on their way:
    // they are large, and copies would show.
    #[inline]
    pub(super) fn decide_one<'p>(&self, check: &Check<'p, '_>) -> Decision<'p> {
        let Some(home) = Home::of(check.policy, self.number) else {
            return self.decide_slowly(slice::from_ref(check));
        };
        let (mark, cost) = (self.mark(check.key) | home.bits, check.cost.units());
        // Once, and with nothing that may have to be done again: there are few registers.
        if let Some(short) = &home.short
            && short.takes(cost)
        {
            match home.table.glance::<1>(mark) {
                Look::Found(glance) => {
                    let ([tat], now) = (glance.state, self.now());
                    // Each way to its own end: to build one answer out of both would take longer.
                    match short.pass(tat, now, cost) {
                        Ok(next) if glance.replace([next]) => {
                            return Decision::one(now, check.policy, short.allowed(next, now));
                        }
                        Err(wait) if glance.is_still() => {
                            return Decision::one(now, check.policy, short.denied(tat, now, wait));
                        }
                        Ok(_) | Err(_) => {}
                    }
                    stand_back(0);
                }
                Look::Missing => return self.decide_otherwise(&home.table, mark, check),
                Look::Busy => stand_back(0),
            }
        }
        match home.table.shape().slot {
            2 => self.decide_at::<1>(&home.table, mark, check),
            3 => self.decide_at::<2>(&home.table, mark, check),
            _ => self.decide_at::<3>(&home.table, mark, check),
        }
    }

    #[inline(never)]
    fn decide_at<'p, const WORDS: usize>(
        &self,
        table: &Table,
        mark: u64,
        check: &Check<'p, '_>,
    ) -> Decision<'p> {
        let engine = &check.policy.definition().engine;
        let cost = check.cost.units();
        for attempt in 1..=ATTEMPTS {
            let glance = match table.glance::<WORDS>(mark) {
                Look::Found(glance) => glance,
                Look::Missing => return self.decide_otherwise(table, mark, check),
                Look::Busy => {
                    stand_back(attempt);
                    continue;
                }
            };
            let mut state = glance.state;
            // Between the reading and the writing, if nothing changes meanwhile: so each key sees
            // time in the order in which it is asked about.
            let now = self.now();
            let Some(judged) = engine.judge(&mut state, now, cost) else {
                break;
            };
            let is_done = if judged.is_allowed() && cost > 0 {
                glance.replace(state)
            } else {
                glance.is_still()
            };
            if is_done {
                return Decision::one(now, check.policy, judged);
            }
            stand_back(attempt);
        }
        self.decide_slowly(slice::from_ref(check))
    }

    /// Decides a check on a key that has no slot, or nothing in it that can be judged there.
    #[inline(never)]
    fn decide_otherwise<'p>(
        &self,
        table: &Table,
        mark: u64,
        check: &Check<'p, '_>,
    ) -> Decision<'p> {
        if let Some(spot) = table.directory().spot(mark) {
            match spot.page.find(mark, table.shape()) {
                Search::Found(found) => {
                    if let Some((now, judged)) = self.judge_aside(table, &spot, &found, check) {
                        return Decision::one(now, check.policy, judged);
                    }
                }
                Search::Missing => return self.decide_new(table, mark, check),
                Search::Busy => {}
            }
        }
        self.decide_slowly(slice::from_ref(check))
    }

    /// Judges a key that is kept aside, where it is, if it is to stay there.
    fn judge_aside(
        &self,
        table: &Table,
        spot: &Spot<'_>,
        found: &Found<'_>,
        check: &Check<'_, '_>,
    ) -> Option<(Timestamp, Judged)> {
        let cost = check.cost.units();
        let _locked = found.group.try_lock(found.sequence)?;
        if !table.directory().is_still(spot) {
            return None;
        }
        table.aside(&found.copied, |kept| {
            let now = self.now();
            let stays = kept.blocked_for(now) > 0 || !kept.state.is_small();
            if !stays || !kept.definition.same(check.policy.definition()) {
                return None;
            }
            let verdict = kept.verdict(now, cost);
            if let Verdict::Allow { .. } = verdict {
                kept.charge(now, cost);
            }
            Some((now, Judged { verdict, standing: kept.standing(now) }))
        })
    }

    /// Decides a check on a key that has no slot yet, if that is all there is to it.
    #[cold]
    fn decide_new<'p>(&self, table: &Table, mark: u64, check: &Check<'p, '_>) -> Decision<'p> {
        let (engine, cost) = (&check.policy.definition().engine, check.cost.units());
        let mut decided = None;
        // Asked when the slot is its own: so the key sees time in order from the start.
        let mut newcomer = || {
            let (now, mut words) = (self.now(), Words::default());
            let judged = engine.judge(table.state_words_mut(&mut words), now, cost)?;
            decided = Some((now, judged));
            judged.is_allowed().then_some((mark, words))
        };
        let has_bits = mark & DEFINITION_BITS != 0;
        if has_bits
            && cost > 0
            && self.insert_charged(table, mark, &mut newcomer)
            && let Some((now, judged)) = decided
        {
            return Decision::one(now, check.policy, judged);
        }
        self.decide_slowly(slice::from_ref(check))
    }

    /// Decides a few checks at once, quickly if all their keys have slots and nothing is special
    /// about them.
    #[inline(never)]
    pub(super) fn decide_few<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        // By their number, so that loops over them are none: to go round takes longer than all that
        // is done here.
        if let Some(two) = checks.as_array::<2>() {
            return self.decide_some(two);
        }
        if let Some(three) = checks.as_array::<3>() {
            return self.decide_some(three);
        }
        match checks.as_array::<4>() {
            Some(four) => self.decide_some(four),
            None => self.decide_slowly(checks),
        }
    }

    #[inline(always)]
    fn decide_some<'p, const N: usize>(&self, checks: &[Check<'p, '_>; N]) -> Decision<'p> {
        // Once, as a single one.
        if let Some(decision) = self.decide_short(checks) {
            return decision;
        }
        'attempts: for attempt in 0..ATTEMPTS {
            let Some(views) = self.views(checks, |check, hash| self.view(check, hash)) else {
                break;
            };
            if !are_apart(&views.each_ref().map(|view| view.glance.address())) {
                break;
            }
            let now = self.now();
            let mut next = [Words::default(); N];
            let mut judged = [Judged::NONE; N];
            let mut allowed = true;
            for (((view, next), judged), check) in
                views.iter().zip(&mut next).zip(&mut judged).zip(checks)
            {
                if !view.judge(now, check, next, judged) {
                    break 'attempts;
                }
                allowed &= judged.is_allowed();
            }
            let is_done = if allowed {
                let mut next = next.iter();
                // As many as there are views.
                let none = &Words::default();
                make_all(
                    &views.each_ref().map(|view| view.glance.change(next.next().unwrap_or(none))),
                )
            } else {
                views.iter().all(|view| view.glance.is_still())
            };
            if !is_done {
                stand_back(attempt);
                continue;
            }
            if !allowed {
                for ((view, judged), check) in views.iter().zip(&mut judged).zip(checks) {
                    // Nothing was taken: who would have passed stands as before.
                    if judged.is_allowed() {
                        let standing = view.standing(now, check.policy);
                        *judged = Judged { verdict: Verdict::ALLOW, standing };
                    }
                }
            }
            return Decision::few(now, checks, &judged);
        }
        self.decide_slowly(checks)
    }

    /// Decides a few checks at once, if all are about short buckets whose keys have slots, and nobody is in the way.
    #[inline(always)]
    fn decide_short<'p, const N: usize>(
        &self,
        checks: &[Check<'p, '_>; N],
    ) -> Option<Decision<'p>> {
        let views = self.views(checks, |check, hash| self.short_view(check, hash))?;
        if !are_apart(&views.each_ref().map(|view| view.glance.address())) {
            return None;
        }
        let now = self.now();
        let passed = views.map(|view| view.short.pass(view.tat(), now, view.cost));
        let allowed = passed.iter().all(Result::is_ok);
        let next = passed.map(|passed| [passed.unwrap_or_default()]);
        let is_done = if allowed {
            let mut next = next.iter();
            let none = &[0];
            make_all(&views.each_ref().map(|view| view.glance.change(next.next().unwrap_or(none))))
        } else {
            views.iter().all(|view| view.glance.is_still())
        };
        if !is_done {
            return None;
        }
        let mut passed = passed.iter();
        Some(Decision::few(
            now,
            checks,
            &views.map(|view| match passed.next() {
                // Nothing was taken if another did not pass.
                Some(Ok(next)) => view.short.allowed(if allowed { *next } else { view.tat() }, now),
                Some(Err(wait)) => view.short.denied(view.tat(), now, *wait),
                None => Judged::NONE,
            }),
        ))
    }

    /// How each key is seen, if all can be.
    #[inline(always)]
    fn views<'p, V: Copy, const N: usize>(
        &self,
        checks: &[Check<'p, '_>; N],
        see: impl Fn(&Check<'p, '_>, u64) -> Option<V>,
    ) -> Option<[V; N]> {
        let [first, ..] = checks.as_slice() else { return None };
        let mut hash = self.mark(first.key);
        let mut views = [see(first, hash)?; N];
        for (view, [before, check]) in views.iter_mut().skip(1).zip(checks.array_windows()) {
            // Several limits of one caller are usual; its key is hashed once.
            if !ptr::eq(before.key.as_bytes(), check.key.as_bytes()) {
                hash = self.mark(check.key);
            }
            *view = see(check, hash)?;
        }
        Some(views)
    }

    #[inline(always)]
    fn short_view<'p>(&self, check: &Check<'p, '_>, hash: u64) -> Option<ShortView<'p>> {
        let home = Home::of(check.policy, self.number)?;
        let cost = check.cost.units();
        let short = home.short.as_ref().filter(|short| short.takes(cost))?;
        let glance = home.table.glance::<1>(hash | home.bits).found()?;
        Some(ShortView { glance, short, cost })
    }

    #[inline(always)]
    fn view<'p>(&self, check: &Check<'p, '_>, hash: u64) -> Option<View<'p>> {
        let home = Home::of(check.policy, self.number)?;
        let (table, mark, cost) = (&home.table, hash | home.bits, check.cost.units());
        if cost == 0 {
            return None;
        }
        let short = home.short.as_ref().filter(|short| short.takes(cost));
        let glance: AnyGlance<'_> = match table.shape().slot {
            2 => table.glance::<1>(mark).found()?.into(),
            3 => table.glance::<2>(mark).found()?.into(),
            _ => table.glance::<3>(mark).found()?.into(),
        };
        Some(View { glance, short })
    }
}

/// Whether no two are the same. Two keys in one group, or one key twice, are for those who hold them.
#[inline(always)]
fn are_apart<const N: usize>(addresses: &[usize; N]) -> bool {
    let mut each = addresses.iter().enumerate();
    each.all(|(index, one)| addresses.iter().skip(index + 1).all(|other| other != one))
}

/// A key's slot as it was seen, of a short bucket that takes the cost.
#[derive(Clone, Copy)]
struct ShortView<'p> {
    glance: Glance<'p, 1>,
    short: &'p Short,
    cost: u64,
}

impl ShortView<'_> {
    #[inline(always)]
    fn tat(&self) -> u64 {
        let [tat] = self.glance.state;
        tat
    }
}

/// A key's slot as it was seen.
#[derive(Clone, Copy)]
struct View<'p> {
    glance: AnyGlance<'p>,
    /// The algorithm, if it is a short one and takes the cost.
    short: Option<&'p Short>,
}

impl View<'_> {
    /// What comes of a check, and what to write then. False if it cannot be written.
    #[inline(always)]
    fn judge(
        &self,
        now: Timestamp,
        check: &Check<'_, '_>,
        next: &mut Words,
        judged: &mut Judged,
    ) -> bool {
        let (state, cost) = (self.glance.state, check.cost.units());
        if let (Some(short), [tat, ..], [next, ..]) = (self.short, state, &mut *next) {
            (*judged, *next) = short.judge(tat, now, cost);
            return true;
        }
        *next = state;
        let engine = &check.policy.definition().engine;
        let words = next.get_mut(..self.glance.len()).unwrap_or_default();
        engine.judge(words, now, cost).map(|came| *judged = came).is_some()
    }

    /// How the key stands.
    #[inline(always)]
    fn standing(&self, now: Timestamp, policy: &Policy) -> Standing {
        let mut state = self.glance.state;
        if let (Some(short), [tat, ..]) = (self.short, state) {
            return short.standing(tat, now);
        }
        let words = state.get_mut(..self.glance.len()).unwrap_or_default();
        // A peek. Nothing is written, so nothing can fail to fit.
        let peek = policy.definition().engine.judge(words, now, 0);
        peek.unwrap_or(Judged::NONE).standing
    }
}
