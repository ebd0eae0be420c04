//! Checks on keys that have slots, of which nothing is special: decided without holding anything,
//! and written in one go if nothing changed meanwhile.

use std::{ptr, slice};

use super::MemoryStore;
use super::directory::Spot;
use super::group::{AnyGlance, Words};
use super::page::{DEFINITION_BITS, Look};
use super::sync::spin_loop;
use super::table::{Home, Table};
use crate::algorithm::{ASIDE, Engine, Judgement, Verdict};
use crate::{Check, Decision, Timestamp};

/// How often a check tries to get by without holding its key.
const ATTEMPTS: usize = 4;

impl MemoryStore {
    /// Decides a single check, quickly if its key has a slot and nothing is special about it.
    #[inline]
    pub(super) fn decide_one<'p>(&self, check: &Check<'p, '_>) -> Decision<'p> {
        if let Some((table, bits)) = Home::of(check.policy, self.number) {
            let mark = self.mark(check.key) & !DEFINITION_BITS | bits;
            return match table.shape().slot {
                2 => self.decide_at::<1>(table, mark, check),
                3 => self.decide_at::<2>(table, mark, check),
                _ => self.decide_at::<3>(table, mark, check),
            };
        }
        self.decide_gated(slice::from_ref(check))
    }

    // Decisions are returned from where they are made, and not wrapped and unwrapped on their way:
    // they are large, and copies would show.
    #[inline]
    fn decide_at<'p, const WORDS: usize>(
        &self,
        table: &Table,
        mark: u64,
        check: &Check<'p, '_>,
    ) -> Decision<'p> {
        let engine = &check.policy.definition().engine;
        let cost = check.cost.units();
        for _ in 0..ATTEMPTS {
            let Some(spot) = table.directory().spot(mark, &table.pool) else {
                break;
            };
            let glance = match spot.page.glance::<WORDS>(mark) {
                Look::Found(glance) => glance,
                Look::Missing => return self.decide_new(table, mark, check),
                Look::Busy => {
                    spin_loop();
                    continue;
                }
            };
            let mut state = glance.state;
            if state.first() == Some(&ASIDE) {
                break;
            }
            // Between the reading and the writing, if nothing changes meanwhile: so each key sees
            // time in the order in which it is asked about.
            let now = self.now();
            let still = || table.directory().is_still(&spot);
            let commit = |state: [u64; WORDS], verdict| match verdict {
                Verdict::Allow { .. } if cost > 0 => glance.replace(state, still),
                _ => glance.is_still() && still(),
            };
            if let Some(Judgement { verdict, standing }) = engine.judge_short(&mut state, now, cost)
            {
                if commit(state, verdict) {
                    return Decision::one(now, check.policy, standing, verdict);
                }
                continue;
            }
            let Some(Judgement { verdict, standing }) = engine.judge(&mut state, now, cost) else {
                break;
            };
            if commit(state, verdict) {
                return Decision::one(now, check.policy, standing, verdict);
            }
        }
        self.decide_gated(slice::from_ref(check))
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
            && let Some((now, Judgement { verdict, standing })) = decided
        {
            return Decision::one(now, check.policy, standing, verdict);
        }
        self.decide_gated(slice::from_ref(check))
    }

    /// Decides a few checks at once, quickly if all their keys have slots and nothing is special
    /// about them.
    pub(super) fn decide_few<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        // By their number, so that loops over them are none: whatever grows or goes round takes
        // longer than all that is done here.
        match checks {
            [_, _] => self.decide_some::<2>(checks),
            [_, _, _] => self.decide_some::<3>(checks),
            [_, _, _, _] => self.decide_some::<4>(checks),
            _ => self.decide_gated(checks),
        }
    }

    fn decide_some<'p, const N: usize>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        let Some(few) = checks.first_chunk::<N>() else {
            return self.decide_gated(checks);
        };
        'attempts: for _ in 0..ATTEMPTS {
            let Some(views) = self.views(few) else {
                break;
            };
            // Two keys in one group, or one key twice, are for those who hold them.
            let mut order = views.each_ref().map(|view| view.glance.address());
            order.sort_unstable();
            if !order.is_sorted_by(|one, next| one < next) {
                break;
            }

            let now = self.now();
            let mut words = views.map(|view| view.glance.state);
            let mut judged = [Judgement::NONE; N];
            let mut allowed = true;
            for (((judged, words), view), check) in
                judged.iter_mut().zip(&mut words).zip(&views).zip(few)
            {
                let engine = &check.policy.definition().engine;
                let words = words.get_mut(..view.glance.len()).unwrap_or_default();
                let cost = check.cost.units();
                *judged = match engine.judge_short(words, now, cost) {
                    Some(judged) => judged,
                    None => match engine.judge(words, now, cost) {
                        Some(judged) => judged,
                        None => break 'attempts,
                    },
                };
                allowed &= judged.is_allowed();
            }
            let is_done = match allowed {
                true => View::replace_all(&views, order, words),
                false => views.iter().all(View::is_still),
            };
            if !is_done {
                continue;
            }
            if !allowed {
                for ((judged, view), check) in judged.iter_mut().zip(&views).zip(few) {
                    // Nothing was taken: who would have passed stands as before.
                    if judged.is_allowed()
                        && let Some(peek) = view.peek(&check.policy.definition().engine, now)
                    {
                        *judged = peek;
                    }
                }
            }
            let answers = few.iter().zip(&judged);
            return Decision::several(
                now,
                answers.map(|(check, one)| (check.policy, one.standing, one.verdict)),
            );
        }
        self.decide_gated(checks)
    }

    /// The slots of these checks, if all of them are ordinary ones.
    #[inline(always)]
    fn views<'p, const N: usize>(&self, checks: &[Check<'p, '_>; N]) -> Option<[View<'p>; N]> {
        let first = checks.first()?;
        let mut hash = self.mark(first.key);
        let mut views = [self.view(first, hash)?; N];
        for (view, [before, check]) in views.iter_mut().skip(1).zip(checks.array_windows()) {
            // Several limits of one caller are usual; its key is hashed once.
            if !ptr::eq(before.key.as_bytes(), check.key.as_bytes()) {
                hash = self.mark(check.key);
            }
            *view = self.view(check, hash)?;
        }
        Some(views)
    }

    #[inline(always)]
    fn view<'p>(&self, check: &Check<'p, '_>, hash: u64) -> Option<View<'p>> {
        let (table, bits) = Home::of(check.policy, self.number)?;
        let mark = hash & !DEFINITION_BITS | bits;
        let spot = table.directory().spot(mark, &table.pool)?;
        let glance: AnyGlance<'_> = match table.shape().slot {
            2 => spot.page.glance::<1>(mark).found()?.into(),
            3 => spot.page.glance::<2>(mark).found()?.into(),
            _ => spot.page.glance::<3>(mark).found()?.into(),
        };
        if check.cost.units() == 0 || glance.state.first() == Some(&ASIDE) {
            return None;
        }
        Some(View { table, spot, glance })
    }
}

/// A key's slot as it was seen.
#[derive(Clone, Copy)]
struct View<'t> {
    table: &'t Table,
    spot: Spot<'t>,
    glance: AnyGlance<'t>,
}

impl View<'_> {
    fn peek(&self, engine: &Engine, now: Timestamp) -> Option<Judgement> {
        let mut words = self.glance.state;
        engine.judge(words.get_mut(..self.glance.len())?, now, 0)
    }

    #[inline(always)]
    fn is_still(&self) -> bool {
        self.glance.is_still() && self.table.directory().is_still(&self.spot)
    }

    /// Writes all of them, if none has changed. They are locked in the order of their addresses, as
    /// everywhere, and nobody waits for a lock while he has another.
    #[inline(always)]
    fn replace_all<const N: usize>(
        views: &[Self; N],
        order: [usize; N],
        words: [Words; N],
    ) -> bool {
        let mut locked = 0;
        let mut unchanged = true;
        for address in order {
            for view in views.iter().filter(|view| view.glance.address() == address) {
                unchanged = unchanged && view.glance.try_lock();
                locked += usize::from(unchanged);
                unchanged = unchanged && view.table.directory().is_still(&view.spot);
            }
        }
        for (view, words) in views.iter().zip(words).filter(|_| unchanged) {
            view.glance.write(words);
        }
        for address in order.iter().take(locked) {
            for view in views.iter().filter(|view| view.glance.address() == *address) {
                view.glance.unlock();
            }
        }
        unchanged
    }
}
