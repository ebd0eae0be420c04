//! What was denied a moment ago is denied again without asking, for a moment.
//!
//! A caller that hammers on costs no round trips. What was recalled of its keys is judged again at the time
//! it is by now, so waits stay exact; only what is given back or reset elsewhere is not seen until this is
//! forgotten. What this instance settles, resets or takes itself is forgotten at once.

use std::collections::HashMap;
use std::time::Duration;

use dashpot::{Cost, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::question::Question;
use crate::recall::Recalled;

/// How many keys are remembered at most.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Denials {
    span: Duration,
    keys: Mutex<HashMap<Vec<u8>, Denied>>,
}

#[derive(Clone, Debug)]
struct Denied {
    recalled: Recalled,
    /// By the server's clock, and by this one's.
    at: Timestamp,
    heard: Instant,
    cost: u64,
}

impl Denials {
    pub(crate) fn new(span: Duration) -> Self {
        Self { span, keys: Mutex::default() }
    }

    /// What was recalled of these keys, and what the server's clock shows by now, if they are denied.
    pub(crate) fn recall(&self, questions: &[Question<'_>]) -> Option<(Timestamp, Vec<Recalled>)> {
        let known = {
            let keys = self.keys.lock();
            // Mostly nobody is denied anything, or somebody else.
            if keys.is_empty() {
                return None;
            }
            let known = questions.iter().map(|question| keys.get(&question.key).cloned());
            known.collect::<Option<Vec<Denied>>>()?
        };
        let heard = Instant::now();
        let elapsed = |denied: &Denied| heard.saturating_duration_since(denied.heard);
        if known.iter().any(|denied| elapsed(denied) >= self.span) {
            return None;
        }
        // Not the latest of them: what is denied then is denied now.
        let now = known.iter().map(|denied| denied.at.after(elapsed(denied))).min()?;
        let mut judged = questions.iter().zip(&known);
        let denied = judged.any(|(question, known)| {
            let state = known.recalled.state(question.policy, now);
            known.recalled.tells(question.cost, known.cost)
                && !state.allows(now, Cost::new(question.cost))
        });
        denied.then(|| (now, known.into_iter().map(|denied| denied.recalled).collect()))
    }

    /// Remembers what was recalled when these were denied.
    pub(crate) fn remember<'q, 'p: 'q>(
        &self,
        answers: impl Iterator<Item = (&'q Question<'p>, &'q Recalled)>,
        at: Timestamp,
    ) {
        if self.span.is_zero() {
            return;
        }
        let heard = Instant::now();
        let mut keys = self.keys.lock();
        if keys.len() >= MOST {
            keys.retain(|_, denied| heard.saturating_duration_since(denied.heard) < self.span);
        }
        if keys.len() >= MOST {
            keys.clear();
        }
        for (question, recalled) in answers {
            let denied = Denied { recalled: recalled.clone(), at, heard, cost: question.cost };
            keys.insert(question.key.clone(), denied);
        }
    }

    pub(crate) fn forget(&self, key: &[u8]) {
        let mut keys = self.keys.lock();
        if !keys.is_empty() {
            keys.remove(key);
        }
    }
}
