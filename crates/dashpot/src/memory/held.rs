//! Whatever is not [quick](super::quick), or gave that up: more than four checks, several of which one
//! is new, blocks, changed limits. The keys are [held](super::hold) while it is decided.

use std::collections::HashSet;
use std::{iter, slice};

use smallvec::SmallVec;

use super::MemoryStore;
use super::entry::can_leave_its_cell;
use super::hold::{Hold, Source};
use super::kept::Kept;
use super::overflow::Cell;
use super::plan::{Judge, Plan, Question};
use super::sync::Backoff;
use crate::algorithm::Verdict;
use crate::{Check, Decision, Key, Policy, PolicyStatus, Standing, Timestamp};

/// How often the keys of a call are given slots before they are counted in cells.
const INSERTIONS: usize = 8;

impl MemoryStore {
    /// Decides any checks, holding their keys.
    pub(super) fn decide_held<'p>(
        &self,
        checks: &[Check<'p, '_>],
        judge: &Judge<'_>,
    ) -> Decision<'p> {
        let mut plan =
            Plan::new(checks.iter().map(|check| {
                Question::new(self.place(check.policy, check.key), check.cost.units())
            }));
        let (mut backoff, mut insertions) = (Backoff::default(), 0);
        // The plan for the next attempt, if it is another.
        let mut merged: Option<Plan<'_>> = None;
        let Decided { now, verdicts, standings, lacks_room } = loop {
            let attempt = merged.take();
            match self.try_held(&attempt.as_ref().unwrap_or(&plan).questions, judge) {
                Tried::Decided(answer) => {
                    if let Some(attempt) = attempt {
                        plan = attempt;
                    }
                    break answer;
                }
                Tried::Disturbed => {
                    backoff.wait();
                    for place in plan.questions.iter_mut().map(|question| &mut question.place) {
                        if place.table.is_none() {
                            place.table = self.known_table(place.policy);
                        }
                    }
                }
                Tried::Wanting => {
                    // Where there is hardly any room, keys of one call would take each other's place
                    // for ever.
                    insertions += 1;
                    let is_hopeless = insertions > INSERTIONS;
                    if insertions == 1 {
                        self.make_room(plan.questions.iter().map(|question| &question.place));
                    }
                    for question in plan.questions.iter_mut().filter(|one| one.takes_something()) {
                        let inserted = !is_hopeless && self.insert(&mut question.place, false);
                        question.overflowing = !inserted;
                    }
                }
                // They are counted as one there, so they are asked about as one, while they are.
                Tried::Alike(cells) if attempt.is_none() => merged = Some(plan.merged(&cells)),
                // And another is by now.
                Tried::Alike(_) => {}
            }
        };

        if lacks_room {
            // Who is counted in a cell leaves it for room, which somebody has to make.
            self.sweep_a_little();
        }
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

    fn try_held(&self, questions: &[Question<'_>], judge: &Judge<'_>) -> Tried {
        let before = self.now();
        let mut sources: SmallVec<[Source<'_>; 4]> = SmallVec::new();
        for Question { place, overflowing, .. } in questions {
            match Source::find(place, &self.overflow, *overflowing, before) {
                Some(source) => sources.push(source),
                None => return Tried::Disturbed,
            }
        }
        let cells: SmallVec<[Option<Cell>; 4]> = sources.iter().map(Source::cell).collect();
        let mut mates = Vec::new();
        for (question, cell) in questions.iter().zip(&cells) {
            for (mate, _) in &question.mates {
                let source = Source::find(mate, &self.overflow, question.overflowing, before);
                match source.filter(|source| cell.is_some() && source.cell() == *cell) {
                    Some(source) => mates.push(source),
                    None => return Tried::Disturbed, // They are not counted as one any more.
                }
            }
        }
        let mut seen = HashSet::new();
        if cells.iter().flatten().any(|cell| !seen.insert(*cell)) {
            return Tried::Alike(cells);
        }
        let Some(mut hold) = Hold::all(&sources, &self.overflow, before) else {
            return Tried::Disturbed;
        };
        // Nor may one of those that are asked about as one have left their cell.
        if !mates.iter().all(Source::is_still_absent) {
            return Tried::Disturbed;
        }
        // Nor may a key whose policy had no table be counted in a new one by now, together with one
        // that is held.
        let is_elsewhere = |Question { place, .. }: &Question<'_>| {
            place.table.is_none() && self.may_have_table(place.policy)
        };
        if questions.len() > 1 && questions.iter().any(is_elsewhere) {
            return Tried::Disturbed;
        }
        // While all keys are held, so that each sees time in the order in which it is asked about.
        let now = self.now();
        let mut kept: SmallVec<[Kept; 4]> = questions
            .iter()
            .zip(&sources)
            .map(|(question, source)| {
                let mut kept = hold.take(source, &question.place);
                if source.cell().is_none() || kept.is_idle(now) {
                    kept.redefine(question.definition(), now);
                }
                kept
            })
            .collect();
        let both = questions.iter().zip(&kept);
        let verdicts: SmallVec<[Verdict; 4]> =
            both.map(|(question, kept)| question.verdict(kept, now, judge)).collect();
        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        // Who finds room leaves its cell, with all that is counted there: cells would never be as good as new
        // again if all newcomers went on charging them.
        let would_leave = |question: &Question<'_>| {
            !question.overflowing && can_leave_its_cell(question.place.policy)
        };
        let has_room = self.pool.keys() < self.pool.max_keys();
        let (mut wanting, mut lacks_room) = (false, false);
        for (question, source) in questions.iter().zip(&sources) {
            let takes = allowed && question.takes_something();
            match source {
                Source::Nowhere(_) => wanting |= takes,
                Source::Cell(..) if takes && would_leave(question) => {
                    *(if has_room { &mut wanting } else { &mut lacks_room }) = true;
                }
                Source::Cell(..) | Source::Slot(..) => {}
            }
        }
        if allowed && !wanting {
            for (question, kept) in questions.iter().zip(&mut kept) {
                question.charge(kept, now);
            }
        }
        let both = questions.iter().zip(&kept);
        let standings = both.map(|(question, kept)| question.standing(kept, now)).collect();
        for (source, kept) in sources.iter().zip(kept) {
            hold.put(source, kept);
        }
        if wanting {
            return Tried::Wanting;
        }
        Tried::Decided(Decided { now, verdicts, standings, lacks_room })
    }

    /// Changes what is remembered of a key, if anything is or is wanted to be. `change` is told
    /// whether it is remembered together with others.
    pub(super) fn change(
        &self,
        policy: &Policy,
        key: Key<'_>,
        wanted: Wanted,
        mut change: impl FnMut(&mut Kept, Timestamp, bool),
    ) -> Timestamp {
        let mut place = self.place(policy, key);
        let mut overflowing = false;
        let mut backoff = Backoff::default();
        let can_move = can_leave_its_cell(policy);
        loop {
            let before = self.now();
            let found = Source::find(&place, &self.overflow, overflowing, before);
            let to_insert = match (&found, wanted) {
                (Some(Source::Nowhere(_)), Wanted::IfThereIsRoom) => Some(false),
                (Some(Source::Nowhere(_)), Wanted::Always) => Some(true),
                (Some(Source::Cell(..)), Wanted::Always | Wanted::IfShared) if can_move => {
                    Some(true)
                }
                _ => None,
            };
            let done = match (&found, to_insert) {
                (None, _) | (_, Some(_)) => None,
                (Some(Source::Nowhere(_)), None) => Some(before),
                (Some(source), None) => Hold::all(slice::from_ref(source), &self.overflow, before)
                    .map(|mut hold| {
                        let now = self.now();
                        let mut kept = hold.take(source, &place);
                        change(&mut kept, now, source.cell().is_some());
                        hold.put(source, kept);
                        now
                    }),
            };
            match (done, to_insert) {
                (Some(now), _) => {
                    match &found {
                        Some(Source::Cell(..)) => self.room.touched_all(),
                        _ => self.room.touched(place.line()),
                    }
                    return now;
                }
                (None, Some(force)) => {
                    self.make_room(iter::once(&place));
                    overflowing = !self.insert(&mut place, force);
                }
                (None, None) => backoff.wait(),
            }
        }
    }
}

/// What came of each question.
struct Decided {
    now: Timestamp,
    verdicts: SmallVec<[Verdict; 4]>,
    standings: SmallVec<[Standing; 4]>,
    /// Whether a key that passed would have left its cell if there had been room.
    lacks_room: bool,
}

/// What came of an attempt to decide.
#[expect(clippy::large_enum_variant, reason = "it is looked at once, where it is made")]
enum Tried {
    Decided(Decided),
    /// Somebody was in the way.
    Disturbed,
    /// Everything passes, but some keys have nowhere to be counted yet.
    Wanting,
    /// Some keys are counted in the same overflow cells, which are these.
    Alike(SmallVec<[Option<Cell>; 4]>),
}

/// Whether a key that is not remembered is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    No,
    /// Else in its overflow cell.
    IfThereIsRoom,
    /// In a slot of its own, come what may.
    Always,
    /// In a slot of its own, if it is remembered together with others.
    IfShared,
}
