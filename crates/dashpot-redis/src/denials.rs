//! What was denied a moment ago is denied again without asking, for a moment.
//!
//! A caller that hammers on costs no round trips. What was recalled of its keys is judged again at the time
//! it is by now, so waits stay exact; only what is given back or reset elsewhere is not seen until this is
//! forgotten. What this instance settles, resets or takes itself is forgotten at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use dashpot::{Cost, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

use crate::question::Question;
use crate::recall::Recalled;

/// How many keys are remembered at most.
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Denials {
    span: Duration,
    keys: Mutex<HashMap<Vec<u8>, Denied>>,
    /// How many keys there are: mostly none, and then nobody needs the lock.
    count: AtomicUsize,
    /// How often keys were forgotten, by their hashes: a denial that was heard before its key was forgotten
    /// must not be remembered after.
    forgotten: Box<[AtomicU32]>,
}

/// How many counts of forgotten keys there are: so many that others' seldom matter.
const COUNTS: usize = 4096;

#[derive(Clone, Debug)]
struct Denied {
    recalled: Recalled,
    /// By the server's clock, and by this one's.
    at: Timestamp,
    heard: Instant,
    cost: u64,
    limit: u64,
}

impl Denials {
    pub(crate) fn new(span: Duration) -> Self {
        let forgotten = (0..COUNTS).map(|_| AtomicU32::new(0)).collect();
        Self { span, keys: Mutex::default(), count: AtomicUsize::new(0), forgotten }
    }

    /// What was recalled of these keys, and what the server's clock shows by now, if they are denied.
    pub(crate) fn recall(&self, questions: &[Question<'_>]) -> Option<(Timestamp, Vec<Recalled>)> {
        if self.is_empty() {
            return None;
        }
        let known = {
            let keys = self.keys.lock();
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
            let state = known.recalled.state(question, now);
            let (asked, known_by) =
                ((question.cost, question.policy.limit()), (known.cost, known.limit));
            known.recalled.tells(asked, known_by) && !state.allows(now, Cost::new(question.cost))
        });
        denied.then(|| (now, known.into_iter().map(|denied| denied.recalled).collect()))
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn forgotten(&self, key: &[u8]) -> Option<&AtomicU32> {
        let hash = usize::try_from(xxh3_64(key)).unwrap_or_default();
        self.forgotten.get(hash % COUNTS)
    }

    /// To be drawn before these are asked about, and shown when they were denied.
    pub(crate) fn ticket(&self, questions: &[Question<'_>]) -> u64 {
        let forgotten = questions.iter().filter_map(|question| self.forgotten(&question.key));
        forgotten.map(|count| u64::from(count.load(Ordering::Acquire))).sum()
    }

    /// Remembers what was recalled when these were denied, unless some of them were forgotten meanwhile.
    pub(crate) fn remember<'r>(
        &self,
        questions: &[Question<'_>],
        answers: impl Iterator<Item = (&'r Recalled, Timestamp)>,
        ticket: u64,
    ) {
        if self.span.is_zero() {
            return;
        }
        let heard = Instant::now();
        let mut keys = self.keys.lock();
        if self.ticket(questions) != ticket {
            return;
        }
        if keys.len() >= MOST {
            keys.retain(|_, denied| heard.saturating_duration_since(denied.heard) < self.span);
        }
        if keys.len() >= MOST {
            keys.clear();
        }
        for (question, (recalled, at)) in questions.iter().zip(answers) {
            let (cost, limit) = (question.cost, question.policy.limit());
            let denied = Denied { recalled: recalled.clone(), at, heard, cost, limit };
            keys.insert(question.key.clone(), denied);
        }
        self.count.store(keys.len(), Ordering::Relaxed);
    }

    /// Something was taken of this key.
    pub(crate) fn outdate(&self, key: &[u8]) {
        if !self.is_empty() {
            let mut keys = self.keys.lock();
            keys.remove(key);
            self.count.store(keys.len(), Ordering::Relaxed);
        }
    }

    /// Something was given back to this key, or forgotten: what was heard before does not count any more.
    pub(crate) fn forget(&self, key: &[u8]) {
        if let Some(count) = self.forgotten(key) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        // Whoever remembers it from here on looks at the count while holding this.
        let mut keys = self.keys.lock();
        keys.remove(key);
        self.count.store(keys.len(), Ordering::Relaxed);
    }
}
