//! Checks on keys that have slots, of which nothing is special: decided without holding anything,
//! and written in one go if nothing changed meanwhile.

use std::{ptr, slice};

use smallvec::SmallVec;

use super::MemoryStore;
use super::directory::Spot;
use super::group::{AnyGlance, LockedGroup, Words};
use super::page::DEFINITION_BITS;
use super::table::{Home, Table};
use crate::algorithm::{ASIDE, Judgement, Verdict};
use crate::{Check, Decision, Key};

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
            let Some(glance) = spot.page.glance::<WORDS>(mark) else {
                break;
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

    /// Decides a few checks at once, quickly if all their keys have slots and nothing is special
    /// about them.
    pub(super) fn decide_few<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        for _ in 0..ATTEMPTS {
            match self.try_few(checks) {
                Few::Decided(decision) => return decision,
                Few::Changed => {}
                Few::Special => break,
            }
        }
        self.decide_gated(checks)
    }

    #[inline]
    fn try_few<'p>(&self, checks: &[Check<'p, '_>]) -> Few<'p> {
        let mut views: SmallVec<[View<'p>; 4]> = SmallVec::new();
        let mut last: Option<(Key<'_>, u64)> = None;
        for check in checks {
            let Some((table, bits)) = Home::of(check.policy, self.number) else {
                return Few::Special;
            };
            // Several limits of one caller are usual; its key is hashed once.
            let hash = match last {
                Some((key, hash)) if ptr::eq(key.as_bytes(), check.key.as_bytes()) => hash,
                _ => self.mark(check.key),
            };
            last = Some((check.key, hash));
            let Some(view) = View::of(table, hash & !DEFINITION_BITS | bits) else {
                return Few::Special;
            };
            // Two keys in one group, or one key twice, are for those who hold them; so are peeks.
            let is_known = |known: &View<'_>| known.glance.group() == view.glance.group();
            if check.cost.units() == 0 || views.iter().any(is_known) {
                return Few::Special;
            }
            views.push(view);
        }

        let now = self.now();
        let mut judged: SmallVec<[Judgement; 4]> = SmallVec::new();
        for (check, view) in checks.iter().zip(&mut views) {
            let engine = &check.policy.definition().engine;
            let words = view.words.get_mut(..view.glance.len()).unwrap_or_default();
            let cost = check.cost.units();
            match engine.judge_short(words, now, cost).or_else(|| engine.judge(words, now, cost)) {
                Some(one) => judged.push(one),
                None => return Few::Special,
            }
        }
        let allowed = judged.iter().all(|one| matches!(one.verdict, Verdict::Allow { .. }));
        let is_done =
            if allowed { View::replace_all(&views) } else { views.iter().all(View::is_still) };
        if !is_done {
            return Few::Changed;
        }
        if !allowed {
            // Nothing was taken: those who would have passed stand as they stood.
            for ((check, view), one) in checks.iter().zip(&views).zip(&mut judged) {
                if matches!(one.verdict, Verdict::Allow { .. }) {
                    let engine = &check.policy.definition().engine;
                    let mut words = view.glance.state();
                    let words = words.get_mut(..view.glance.len()).unwrap_or_default();
                    if let Some(peek) = engine.judge(words, now, 0) {
                        *one = Judgement { verdict: Verdict::ALLOW, ..peek };
                    }
                }
            }
        }
        let statuses = checks.iter().zip(judged);
        Few::Decided(Decision::several(
            now,
            statuses.map(|(check, one)| (check.policy, one.standing, one.verdict)),
        ))
    }
}

/// What came of an attempt to decide a few checks.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and never on the heap")]
enum Few<'p> {
    Decided(Decision<'p>),
    /// Something changed meanwhile.
    Changed,
    /// One of the keys needs to be held.
    Special,
}

/// A key's slot as it was seen, and what is to become of it.
struct View<'t> {
    table: &'t Table,
    spot: Spot<'t>,
    glance: AnyGlance<'t>,
    words: Words,
}

impl<'t> View<'t> {
    /// The slot with this very mark, if it is an ordinary one.
    #[inline]
    fn of(table: &'t Table, mark: u64) -> Option<Self> {
        let spot = table.directory().spot(mark, &table.pool)?;
        let glance = match table.shape().slot {
            2 => spot.page.glance::<1>(mark)?.into(),
            3 => spot.page.glance::<2>(mark)?.into(),
            _ => spot.page.glance::<3>(mark)?.into(),
        };
        let words = AnyGlance::state(&glance);
        (words.first() != Some(&ASIDE)).then_some(Self { table, spot, glance, words })
    }

    #[inline]
    fn is_still(&self) -> bool {
        self.glance.is_still() && self.table.directory().is_still(&self.spot)
    }

    /// Writes all of them, if none has changed. They are locked in the order of their addresses, as
    /// everywhere, and nobody waits for a lock while he has another.
    #[inline]
    fn replace_all(views: &[Self]) -> bool {
        let mut order: SmallVec<[&Self; 4]> = views.iter().collect();
        order.sort_unstable_by_key(|view| view.glance.group());
        let mut locked: SmallVec<[LockedGroup<'t>; 4]> = SmallVec::new();
        for view in order {
            match view.glance.try_lock() {
                Some(one) if view.table.directory().is_still(&view.spot) => locked.push(one),
                _ => return false,
            }
        }
        for view in views {
            view.glance.write(view.words);
        }
        true
    }
}
