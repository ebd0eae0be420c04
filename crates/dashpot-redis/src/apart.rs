//! Checks whose keys no one call can reach, on several servers or in several slots: reserved one spot after
//! another, and given back if one denies. That never grants too much.

use std::sync::Arc;

use dashpot::{Check, Decision, StoreError, Timestamp};
use redis::Cmd;
use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::question::{Question, Questions};
use crate::recall::{Came, Recalled};
use crate::store::{Inner, decision, passes};
use crate::topology::Spot;

/// Questions that one call can reach.
struct Group {
    spot: Spot,
    members: SmallVec<[usize; 4]>,
}

impl Inner {
    /// Decides about keys that no one call can reach: reserves spot by spot, and undoes that if one denies.
    pub(crate) async fn decide_apart<'p>(
        self: &Arc<Self>,
        checks: &[Check<'p, '_>],
        questions: &Questions<'p>,
        spots: &[Spot],
        taking: bool,
        (deadline, ticket): (Instant, u64),
    ) -> Result<Decision<'p>, StoreError> {
        let mut groups: Vec<Group> = Vec::new();
        for (index, &spot) in spots.iter().enumerate() {
            match groups.iter_mut().find(|group| group.spot == spot) {
                Some(group) => group.members.push(index),
                None => groups.push(Group { spot, members: SmallVec::from_slice(&[index]) }),
            }
        }
        // What everybody shares comes last: who is denied anyway takes nothing of it, not even for a moment.
        groups.sort_by_key(|group| {
            group.members.iter().any(|&one| questions.all.get(one).is_some_and(|q| q.is_global))
        });
        let mut answers: Vec<Option<(Recalled, Timestamp)>> = vec![None; questions.all.len()];
        let mut taken = Taken { store: self.clone(), calls: Vec::new() };
        let mut going = taking;
        for group in &groups {
            let asked: SmallVec<[&Question<'_>; 4]> =
                group.members.iter().filter_map(|&index| questions.all.get(index)).collect();
            let wants = asked.iter().any(|question| question.cost > 0);
            let answer = match self.ask(group.spot, &asked, going && wants, deadline).await {
                Ok(answer) => answer,
                // Somebody else has denied it, which is all there is to know.
                Err(_) if taking && !going => continue,
                Err(failure) => {
                    taken.given_back(deadline).await;
                    return Err(failure.into());
                }
            };
            if going && wants {
                if answer.came == Came::Taken {
                    for (question, recalled) in asked.iter().zip(&answer.states) {
                        taken.add(group.spot, question, recalled, answer.now);
                    }
                } else {
                    going = false;
                }
            }
            for (&index, recalled) in group.members.iter().zip(answer.states) {
                if let Some(slot) = answers.get_mut(index) {
                    *slot = Some((recalled, answer.now));
                }
            }
        }
        if going {
            taken.calls.clear();
        } else {
            taken.given_back(deadline).await;
        }
        let latest = answers.iter().flatten().map(|&(_, at)| at).max();
        let now = latest.ok_or(Failure::Odd("no answer to any question"))?;
        // Of what nobody told anything about, nothing is known to be used.
        let is_known = answers.iter().all(Option::is_some);
        let known = answers.into_iter().map(|answer| answer.unwrap_or((Recalled::NOTHING, now)));
        let (states, moments): (Vec<Recalled>, Vec<Timestamp>) = known.unzip();
        let allowed = if taking {
            going
        } else {
            let mut each = questions.all.iter().zip(&states).zip(&moments);
            each.all(|((question, state), &now)| passes(question, state, now))
        };
        let at = |member: usize| moments.get(member).copied().unwrap_or(now);
        let decided = decision(now, checks, questions, &states, allowed, at);
        if decided.is_allowed() != allowed {
            return Err(Failure::Odd("a script decided otherwise").into());
        }
        if allowed && taking {
            questions.all.iter().for_each(|question| self.note(question));
        } else if taking && is_known {
            let answers = states.iter().zip(moments.iter().copied());
            self.denials.remember(&questions.all, answers, ticket);
        }
        Ok(self.with_receipts(decided, checks, questions, at))
    }
}

/// What was taken for a decision that is not made yet. If it comes to nothing it is given back, also if nobody
/// waits for the decision any more. Where that does not work it stays charged: too strict, never too
/// generous.
struct Taken {
    store: Arc<Inner>,
    calls: Vec<(Spot, Cmd, Vec<u8>)>,
}

impl Taken {
    fn add(&mut self, spot: Spot, question: &Question<'_>, recalled: &Recalled, at: Timestamp) {
        let leaks_from = recalled.undone_from(question.policy, at);
        let calls = question.undo(leaks_from, self.store.around());
        self.calls.extend(calls.into_iter().map(|call| (spot, call, question.key.clone())));
    }

    /// Gives it back. Who asks again at once should find it done, but nobody waits for that for long.
    async fn given_back(&mut self, deadline: Instant) {
        if let Some(given_back) = self.give_back() {
            let _ = timeout_at(deadline, given_back).await;
        }
    }

    /// Begins to give it back. Not by the deadline of the decision, which may be why it came to nothing.
    fn give_back(&mut self) -> Option<JoinHandle<()>> {
        let calls = std::mem::take(&mut self.calls);
        let runtime = Handle::try_current().ok().filter(|_| !calls.is_empty())?;
        let store = self.store.clone();
        Some(runtime.spawn(async move {
            let deadline = Instant::now() + store.settings.connect_timeout;
            for (spot, call, key) in calls {
                let _ = store.topology.call(spot, &call, deadline).await;
                store.forget(&key);
            }
        }))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.give_back();
    }
}
