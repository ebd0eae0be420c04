//! What a call's checks come to: who is asked about, and for how much in all.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::overflow::Cell;
use super::place::Place;
use crate::Policy;

/// All checks of one call on one key of a table.
pub(super) struct Question<'p> {
    pub(super) place: Place<'p>,
    pub(super) cost: u64,
    /// Whether its key is to be counted in an overflow cell, for want of room.
    pub(super) overflowing: bool,
}

impl<'p> Question<'p> {
    pub(super) fn new(place: Place<'p>, cost: u64) -> Self {
        Self { place, cost, overflowing: false }
    }

    /// For as much as both, by the stricter definition.
    fn add(&mut self, other: &Self) {
        self.cost = self.cost.saturating_add(other.cost);
        self.place.policy = stricter(self.place.policy, other.place.policy);
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

    /// Makes one question of all that are counted in one cell.
    pub(super) fn merge(&mut self, cells: &[Option<Cell>]) {
        let mut firsts = HashMap::new();
        let mut merged: SmallVec<[Question<'p>; 4]> = SmallVec::new();
        let mut places: SmallVec<[usize; 4]> = SmallVec::new();
        for (question, cell) in self.questions.drain(..).zip(cells) {
            let next = merged.len();
            let place = cell.map_or(next, |cell| *firsts.entry(cell).or_insert(next));
            match merged.get_mut(place) {
                Some(first) => first.add(&question),
                None => merged.push(question),
            }
            places.push(place);
        }
        self.questions = merged;
        for member in &mut self.members {
            *member = places.get(*member).copied().unwrap_or(*member);
        }
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

/// Of two limits on the same counters in one call, the one that grants less.
fn stricter<'p>(one: &'p Policy, other: &'p Policy) -> &'p Policy {
    let grants = |policy: &Policy| (policy.limit(), policy.quota().count());
    if grants(other) < grants(one) { other } else { one }
}
