//! What a call's checks come to: who is asked about, and for how much in all.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::overflow::Cell;
use super::place::Place;
use crate::policy::Definition;

/// All checks of one call on one key of a table.
#[derive(Clone)]
pub(super) struct Question<'p> {
    pub(super) place: Place<'p>,
    /// Under any window, the definitions that are to agree, if there are several.
    pub(super) all: SmallVec<[Arc<Definition>; 1]>,
    pub(super) cost: u64,
    /// Whether its key is to be counted in an overflow cell, for want of room.
    pub(super) overflowing: bool,
    /// Other keys that it stands for, too: they are counted in the same cell.
    pub(super) others: Vec<Place<'p>>,
}

impl<'p> Question<'p> {
    pub(super) fn new(place: Place<'p>, cost: u64) -> Self {
        Self { place, all: SmallVec::new(), cost, overflowing: false, others: Vec::new() }
    }

    /// For as much as both, by the stricter definition.
    fn add(&mut self, other: &Self) {
        self.cost = self.cost.saturating_add(other.cost);
        let (ours, theirs) = (self.place.policy, other.place.policy);
        let disagree = ours.is_any_window() && !ours.definition().same(theirs.definition());
        let own = [ours.definition(), theirs.definition()].into_iter().filter(|_| disagree);
        for definition in own.chain(&other.all) {
            if !self.all.iter().any(|known| known.same(definition)) {
                self.all.push(definition.clone());
            }
        }
        self.place.policy = ours.governing(theirs);
        self.overflowing |= other.overflowing;
    }

    /// Whether there is anything to remember: peeks take nothing, and without a limit nothing is
    /// counted.
    pub(super) fn takes_something(&self) -> bool {
        self.cost > 0 && !self.place.policy.quota().is_unlimited()
    }
}

pub(super) struct Plan<'p> {
    pub(super) questions: SmallVec<[Question<'p>; 4]>,
    /// The question of each check.
    pub(super) members: SmallVec<[usize; 4]>,
}

impl<'p> Plan<'p> {
    pub(super) fn new(checks: impl ExactSizeIterator<Item = Question<'p>>) -> Self {
        let mut plan = Self { questions: SmallVec::new(), members: SmallVec::new() };
        plan.members.resize(checks.len(), 0);
        let mut asked: SmallVec<[(usize, Question<'p>); 4]> = checks.enumerate().collect();
        // Equal ones are then next to each other, however many there are.
        asked.sort_unstable_by_key(|(_, question)| question.place.mark);
        for (index, question) in asked {
            let joined = plan.join(question);
            if let Some(member) = plan.members.get_mut(index) {
                *member = joined;
            }
        }
        plan
    }

    /// The same with one question for all that are counted in one cell.
    pub(super) fn merged(&self, cells: &[Option<Cell>]) -> Self {
        let mut firsts = HashMap::new();
        let mut questions: SmallVec<[Question<'p>; 4]> = SmallVec::new();
        let mut places: SmallVec<[usize; 4]> = SmallVec::new();
        for (question, cell) in self.questions.iter().zip(cells) {
            let next = questions.len();
            let place = cell.map_or(next, |cell| *firsts.entry(cell).or_insert(next));
            match questions.get_mut(place) {
                Some(first) => {
                    first.add(question);
                    first.others.push(question.place.clone());
                }
                None => questions.push(question.clone()),
            }
            places.push(place);
        }
        let place = |member: &usize| places.get(*member).copied().unwrap_or(*member);
        Self { questions, members: self.members.iter().map(place).collect() }
    }

    fn join(&mut self, question: Question<'p>) -> usize {
        let count = self.questions.len();
        let mark = question.place.mark;
        let alike = self.questions.iter_mut().enumerate().rev();
        for (index, group) in alike.take_while(|(_, group)| group.place.mark == mark) {
            if group.place.policy.definition().same_counters(question.place.policy.definition()) {
                group.add(&question);
                return index;
            }
        }
        self.questions.push(question);
        count
    }
}
