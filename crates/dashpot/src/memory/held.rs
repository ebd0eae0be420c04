//! Whatever is not [quick](super::quick): several checks, new keys, blocks, changed limits. The keys
//! are [held](super::hold) while it is decided.

use std::slice;

use smallvec::SmallVec;

use super::MemoryStore;
use super::hold::{Hold, Source};
use super::kept::Kept;
use super::plan::{Plan, Question};
use super::sync::Backoff;
use crate::algorithm::Verdict;
use crate::{Check, Decision, Key, Policy, PolicyStatus, Standing, Timestamp};

impl MemoryStore {
    /// Decides any checks, holding their keys.
    pub(super) fn decide_held<'p>(
        &self,
        checks: &[Check<'p, '_>],
        judge: &Judge<'_>,
    ) -> Decision<'p> {
        let mut plan = Plan::new(checks.iter().map(|check| Question {
            place: self.place(check.policy, check.key),
            cost: check.cost.units(),
        }));
        let mut overflowing: SmallVec<[bool; 4]> = SmallVec::new();
        overflowing.resize(plan.questions.len(), false);
        let mut backoff = Backoff::default();
        let (now, verdicts, standings) = loop {
            match self.try_held(&plan.questions, &overflowing, judge) {
                Tried::Decided(answer) => break answer,
                Tried::Disturbed => backoff.wait(),
                Tried::Wanting => {
                    for (question, overflowing) in plan.questions.iter_mut().zip(&mut overflowing) {
                        if question.takes_something() {
                            *overflowing = !self.insert(&mut question.place, false);
                        }
                    }
                }
            }
        };

        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        let status = |(check, &member): (&Check<'p, '_>, &usize)| {
            let standing = *standings.get(member)?;
            Some(match *verdicts.get(member)? {
                Verdict::Allow { delay } => {
                    PolicyStatus::allow(check.policy, standing, if allowed { delay } else { 0 })
                }
                Verdict::Deny(retry) => PolicyStatus::deny(check.policy, standing, retry),
            })
        };
        Decision::new(now, checks.iter().zip(&plan.members).filter_map(status))
    }

    fn try_held(
        &self,
        questions: &[Question<'_>],
        overflowing: &[bool],
        judge: &Judge<'_>,
    ) -> Tried {
        let before = self.now();
        let mut sources: SmallVec<[Source<'_>; 4]> = SmallVec::new();
        for (question, &overflowing) in questions.iter().zip(overflowing) {
            match Source::find(&question.place, &self.overflow, overflowing, before) {
                Some(source) => sources.push(source),
                None => return Tried::Disturbed,
            }
        }
        let Some(mut hold) = Hold::all(&sources, &self.overflow) else {
            return Tried::Disturbed;
        };
        // While all keys are held, so that each sees time in the order in which it is asked about.
        let now = self.now();
        let mut kept: SmallVec<[Kept; 4]> = questions
            .iter()
            .zip(&sources)
            .map(|(question, source)| {
                let mut kept = hold.take(source, &question.place);
                kept.redefine(question.place.policy.definition(), now);
                kept
            })
            .collect();
        let verdicts: SmallVec<[Verdict; 4]> = questions
            .iter()
            .zip(&kept)
            .map(|(Question { place, cost }, kept)| {
                judge(place.line(), *cost, kept.verdict(now, *cost))
            })
            .collect();
        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        let wanting = allowed
            && questions.iter().zip(&sources).any(|(question, source)| {
                question.takes_something() && matches!(source, Source::Nowhere(_))
            });
        if allowed && !wanting {
            for (question, kept) in questions.iter().zip(&mut kept) {
                kept.charge(now, question.cost);
            }
        }
        let standings = kept.iter().map(|kept| kept.standing(now)).collect();
        for (source, kept) in sources.iter().zip(kept) {
            hold.put(source, kept);
        }
        if wanting { Tried::Wanting } else { Tried::Decided((now, verdicts, standings)) }
    }

    /// Changes what is remembered of a key, if anything is or is wanted to be.
    pub(super) fn change(
        &self,
        policy: &Policy,
        key: Key<'_>,
        wanted: Wanted,
        mut change: impl FnMut(&mut Kept, Timestamp),
    ) -> Timestamp {
        let mut place = self.place(policy, key);
        let mut overflowing = false;
        let mut backoff = Backoff::default();
        loop {
            let before = self.now();
            let found = Source::find(&place, &self.overflow, overflowing, before);
            let to_insert = match (&found, wanted) {
                (Some(Source::Nowhere(_)), Wanted::IfThereIsRoom) => Some(false),
                (Some(Source::Nowhere(_) | Source::Cell(..)), Wanted::Always) => Some(true),
                _ => None,
            };
            let done = match (&found, to_insert) {
                (None, _) | (_, Some(_)) => None,
                (Some(Source::Nowhere(_)), None) => Some(before),
                (Some(source), None) => {
                    Hold::all(slice::from_ref(source), &self.overflow).map(|mut hold| {
                        let now = self.now();
                        let mut kept = hold.take(source, &place);
                        change(&mut kept, now);
                        hold.put(source, kept);
                        now
                    })
                }
            };
            match (done, to_insert) {
                (Some(now), _) => {
                    self.room.touched(place.line());
                    return now;
                }
                (None, Some(force)) => overflowing = !self.insert(&mut place, force),
                (None, None) => backoff.wait(),
            }
        }
    }
}

/// What is made of a verdict: told where one waits for the key, and the cost.
pub(super) type Judge<'j> = dyn Fn(u64, u64, Verdict) -> Verdict + 'j;

/// What came of an attempt to decide.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and never on the heap")]
enum Tried {
    Decided((Timestamp, SmallVec<[Verdict; 4]>, SmallVec<[Standing; 4]>)),
    /// Somebody was in the way.
    Disturbed,
    /// Everything passes, but some keys have nowhere to be counted yet.
    Wanting,
}

/// Whether a key that is not remembered is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    No,
    /// Else in its overflow cell.
    IfThereIsRoom,
    /// In a slot of its own, come what may.
    Always,
}
