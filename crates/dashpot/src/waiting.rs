//! Waiting until there is enough.
//!
//! Those who wait for a key stand in line, and only the first one asks the store: when the wait it
//! was told is over, or when something was given back. Until then everybody sleeps. Nothing is
//! taken before the poll that says so; who leaves takes nothing along, and wakes the next.

mod room;

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use crate::algorithm::Verdict;
use crate::{
    Check, Cost, Decision, Key, Limiter, MemoryStore, Permit, Reservation, Retry, Timestamp,
};

pub(crate) use room::Room;

/// Why it was not worth waiting, or not any longer. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// The policy cannot grant so much at once, however long one waits.
    #[error("the policy can never grant so much at once; ask for less")]
    Never,
    /// There was not enough in time. Told as soon as it is known, not when the time is over.
    #[error("it would be too late; wait longer or come back later")]
    TooLate {
        /// How long it would still take at least, if that is known.
        retry_after: Option<Duration>,
    },
    /// As many wait already as may: 1024 for a key, 65 536 in a store.
    #[error("too many are waiting already; come back later")]
    Full,
}

impl MemoryStore {
    /// [Waits](Limiter::until_ready) until this check passes.
    ///
    /// # Errors
    /// If it never passes, not within that time, or if too many wait already.
    pub fn until_ready<'p>(
        &self,
        check: Check<'p, '_>,
        within: Duration,
    ) -> impl Future<Output = Result<Decision<'p>, NotReady>> + Send {
        let deadline = self.now().after(within);
        async move {
            // Most do not have to wait. While others do, this takes nothing, and tells at least how
            // long it would take without them.
            let behind = |place, cost, verdict| self.room.behind(place, cost, verdict).at_once();
            let decision = self.decide_with(&[check], behind);
            if decision.is_allowed() {
                return Ok(decision);
            }
            try_again_at(&decision, deadline)?;

            let waiter = self.room.enter(self.line(check))?;
            let mut _alarm = None;
            let turn = poll_fn(|context| {
                let at = if waiter.is_first(context.waker()) {
                    let decision = self.decide_with(&[check], |_, _, verdict| verdict.at_once());
                    if decision.is_allowed() {
                        return Poll::Ready(Ok(decision));
                    }
                    try_again_at(&decision, deadline)
                } else if self.now() > deadline {
                    Err(NotReady::TooLate { retry_after: None })
                } else {
                    // Who becomes the first one right at the deadline may still try.
                    Ok(deadline.after(Duration::from_nanos(1)))
                };
                match at {
                    // The end of time never comes.
                    Ok(Timestamp::MAX) => _alarm = None,
                    Ok(at) => _alarm = Some(self.wake_at(at, context.waker())),
                    Err(not_ready) => return Poll::Ready(Err(not_ready)),
                }
                Poll::Pending
            });
            turn.await
        }
    }

    /// How many wait, for whatever key.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.room.len()
    }
}

impl Limiter {
    /// Waits until so many units can be taken, takes them, and says how the key stands then. Gives
    /// up if that takes longer than `within`, counted from this call on the store's clock; and at
    /// once if it is known that it would.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use dashpot::{Limiter, Quota};
    /// use std::time::Duration;
    ///
    /// let limiter = Limiter::new(Quota::per_second(500).burst(1));
    /// for page in 1..=3 {
    ///     let ready = limiter.until_ready("example.com", 1, Duration::from_secs(1)).await?;
    ///     println!("{:?}: fetch page {page}", ready.at()); // every two milliseconds
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// - **In order.** Who waits for a key is served in the order of the first polls, whatever the
    ///   costs: a large one is not overtaken by small ones. While somebody waits for a key, a check
    ///   that takes something of it is denied, with no wait known if it could have passed.
    /// - **Cancel-safe.** Dropping the future leaves the line, and the next one moves up; nothing
    ///   was taken, nothing is lost. A future that is kept but not polled holds up those behind it.
    /// - **Any executor**, and none is needed. Nobody polls in vain: the first one in line is woken
    ///   when the wait it was told is over, or when somebody gives something back.
    /// - **A queue's delay** is waited for before anything is taken, so the decision has none.
    ///
    /// Under [concurrency](crate::Algorithm::Concurrency),
    /// [`acquire_within`](Self::acquire_within) gives back what it took.
    ///
    /// # Errors
    /// If the units can never be taken, not within that time, or if too many wait already.
    pub fn until_ready<'k>(
        &self,
        key: impl Into<Key<'k>>,
        cost: impl Into<Cost>,
        within: Duration,
    ) -> impl Future<Output = Result<Decision<'_>, NotReady>> + Send {
        self.store().until_ready(Check::new(self.policy(), key).cost(cost), within)
    }

    /// Waits for a [permit](Self::acquire), as [`until_ready`](Self::until_ready) does.
    ///
    /// # Errors
    /// If there is none within that time, or if too many wait already.
    pub fn acquire_within<'k>(
        &self,
        key: impl Into<Key<'k>>,
        within: Duration,
    ) -> impl Future<Output = Result<Permit, NotReady>> + Send {
        let check = Check::new(self.policy(), key);
        let ready = self.store().until_ready(check, within);
        async move {
            let taken_at = ready.await?.at();
            let reservation =
                Reservation::new(self.policy().clone(), check.key, check.cost, taken_at);
            Ok(Permit::new(reservation, self.store().clone()))
        }
    }
}

impl Room {
    /// What a check is told that is not in line: nobody takes anything before those who wait.
    pub(crate) fn behind(&self, place: u64, cost: u64, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Allow { .. } if cost > 0 && self.is_waited_for(place) => {
                Verdict::Deny(Retry::Unknown)
            }
            _ => verdict,
        }
    }
}

impl Verdict {
    /// What this means to somebody who would rather wait first and then not be delayed.
    fn at_once(self) -> Self {
        match self {
            Self::Allow { delay } if delay > 0 => Self::Deny(Retry::After(delay)),
            _ => self,
        }
    }
}

/// When to try again after this denial, if that is not too late.
fn try_again_at(denied: &Decision<'_>, deadline: Timestamp) -> Result<Timestamp, NotReady> {
    if denied.is_never() {
        return Err(NotReady::Never);
    }
    let left = deadline.since(denied.at());
    match denied.retry_after() {
        Some(wait) if wait > left => Err(NotReady::TooLate { retry_after: Some(wait) }),
        Some(wait) => Ok(denied.at().after(wait)),
        None if left.is_zero() => Err(NotReady::TooLate { retry_after: None }),
        None => Ok(deadline),
    }
}
