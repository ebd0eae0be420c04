//! What a call's checks come to: who is asked about, and for how much in all.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use smallvec::SmallVec;

use super::kept::Kept;
use super::overflow::Cell;
use super::place::Place;
use crate::algorithm::Verdict;
use crate::policy::Definition;
use crate::{Retry, Standing, Timestamp};

/// What is made of a verdict: told where one waits for the key, and the cost.
pub(super) type Judge<'j> = dyn Fn(u64, u64, Verdict) -> Verdict + 'j;

/// All checks of one call on one key of a table.
#[derive(Clone)]
pub(super) struct Question<'p> {
    pub(super) place: Place<'p>,
    /// The definitions that are to agree, if there are several: under any window, or of several keys.
    pub(super) all: SmallVec<[Arc<Definition>; 1]>,
    /// Those of keys that are only looked at, beside others that are asked for something: they are told how they stand.
    looking: SmallVec<[Arc<Definition>; 1]>,
    pub(super) cost: u64,
    /// Whether its key is to be counted in an overflow cell, for want of room.
    pub(super) overflowing: bool,
    /// All keys that it stands for, and what each is asked for, if there are several: they are counted in the same cell.
    pub(super) mates: Vec<(Place<'p>, u64)>,
}

impl<'p> Question<'p> {
    pub(super) fn new(place: Place<'p>, cost: u64) -> Self {
        let (all, looking) = (SmallVec::new(), SmallVec::new());
        Self { place, all, looking, cost, overflowing: false, mates: Vec::new() }
    }

    /// For as much as both, by the stricter definition; and each is to agree, if one does not speak for the other.
    fn add(&mut self, other: &Self, each: bool) {
        self.cost = self.cost.saturating_add(other.cost);
        let (ours, theirs) = (self.place.policy, other.place.policy);
        let each = each && !ours.definition().same(theirs.definition());
        let own = [ours.definition(), theirs.definition()].into_iter().filter(|_| each);
        for definition in own.chain(&other.all) {
            if !self.all.iter().any(|known| known.same(definition)) {
                self.all.push(definition.clone());
            }
        }
        self.place.policy = ours.stricter(theirs);
        self.overflowing |= other.overflowing;
    }

    /// One for both of two that are counted in the same cell.
    fn and_mate(mut self, other: &Self) -> Self {
        if self.mates.is_empty() {
            self.mates.push((self.place.clone(), self.cost));
        }
        let mate = (other.place.clone(), other.cost);
        match (self.cost, other.cost) {
            (1.., 0) => self.is_seen_by(other),
            (0, 1..) => {
                let mut asked = other.clone();
                asked.mates = mem::take(&mut self.mates);
                asked.is_seen_by(&self);
                self = asked;
            }
            _ => self.add(other, true),
        }
        self.mates.push(mate);
        self
    }

    /// Who only looks has no say in what others get.
    fn is_seen_by(&mut self, other: &Self) {
        self.overflowing |= other.overflowing;
        self.looking.extend(other.all.iter().chain(&other.looking).cloned());
        self.looking.push(other.definition().clone());
    }

    /// By which it is judged.
    pub(super) fn definition(&self) -> &Arc<Definition> {
        self.place.policy.definition()
    }

    /// What comes of it, of those who wait for its keys, too.
    pub(super) fn verdict(&self, kept: &Kept, now: Timestamp, judge: &Judge<'_>) -> Verdict {
        let verdict = kept.verdict_of_all(self.definition(), &self.all, now, self.cost);
        if self.mates.is_empty() {
            return judge(self.place.line(), self.cost, verdict);
        }
        let is_never = |(mate, cost): &(Place<'_>, u64)| {
            let alone = kept.verdict_under(mate.policy.definition(), now, *cost);
            alone == Verdict::Deny(Retry::Never)
        };
        let verdict = match verdict {
            // One by one they might.
            Verdict::Deny(Retry::Never) if !self.mates.iter().any(is_never) => {
                Verdict::Deny(Retry::Unknown)
            }
            verdict => verdict,
        };
        let asked = self.mates.iter().filter(|(_, cost)| *cost > 0);
        asked.fold(verdict, |verdict, (mate, _)| judge(mate.line(), self.cost, verdict))
    }

    /// Takes it. Each key's part at that key's own price, if there are several.
    pub(super) fn charge(&self, kept: &mut Kept, now: Timestamp) {
        if self.mates.is_empty() {
            return kept.charge_under(self.definition(), now, self.cost);
        }
        for (mate, cost) in &self.mates {
            kept.charge_under(mate.policy.definition(), now, *cost);
        }
    }

    /// How its key stands.
    pub(super) fn standing(&self, kept: &Kept, now: Timestamp) -> Standing {
        kept.standing_of_all(self.definition(), self.all.iter().chain(&self.looking), now)
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
                Some(first) => *first = first.clone().and_mate(question),
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
                group.add(&question, question.place.policy.is_any_window());
                return index;
            }
        }
        self.questions.push(question);
        count
    }
}
