//! What a call's checks come to: who is asked about, and for how much in all.

use smallvec::SmallVec;

use super::place::Place;
use crate::Policy;

/// All checks of one call on one key of a table.
pub(super) struct Question<'p> {
    pub(super) place: Place<'p>,
    pub(super) cost: u64,
}

impl Question<'_> {
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

    fn join(&mut self, question: Question<'p>) -> usize {
        let count = self.questions.len();
        let mark = question.place.mark;
        let alike = self.questions.iter_mut().enumerate().rev();
        for (index, group) in alike.take_while(|(_, group)| group.place.mark == mark) {
            if group.place.policy.definition().same_counters(question.place.policy.definition()) {
                group.cost = group.cost.saturating_add(question.cost);
                group.place.policy = stricter(group.place.policy, question.place.policy);
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
