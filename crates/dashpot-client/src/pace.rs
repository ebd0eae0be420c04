//! How fast calls may go, by our own decision.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota, Window, WindowError};
use smallvec::SmallVec;

/// As many wait in a lane as this unless told otherwise.
const QUEUE: usize = 1024;

/// How fast calls of a [lane](crate::Lane) may go, whatever the server allows.
///
/// ```
/// use dashpot_client::Pace;
/// use std::time::Duration;
///
/// let gentle = Pace::every(Duration::from_millis(100))?;               // a minimum interval
/// let bursty = Pace::at_most("10/s burst 20".parse()?);                // a token bucket
/// let webhooks = Pace::leaky("5/s".parse()?, 100);                     // an even flow, 100 wait at the most
/// let careful = bursty.and("1000/day".parse()?).concurrent(4);         // all of it, at most four at once
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pace {
    pub(crate) policies: SmallVec<[Policy; 2]>,
    pub(crate) concurrent: u64,
    pub(crate) queue: usize,
}

impl Default for Pace {
    /// As fast as the server allows.
    fn default() -> Self {
        Self { policies: SmallVec::new(), concurrent: u64::MAX, queue: QUEUE }
    }
}

impl Pace {
    /// At least this long from one call to the next.
    ///
    /// # Errors
    /// If the interval is no window of time: zero, or more than a century.
    pub fn every(interval: Duration) -> Result<Self, WindowError> {
        Ok(Self::at_most(Quota::new(1, Window::new(interval)?)))
    }

    /// So many, with a burst: a token bucket. `4 concurrent` is [`concurrent`](Self::concurrent), and `unlimited` is no
    /// limit.
    #[must_use]
    pub fn at_most(quota: Quota) -> Self {
        Self::default().and(quota)
    }

    /// A leaky bucket as a queue: calls leave one by one, evenly; so many wait, in order, and who finds no place is
    /// [turned away](crate::NotSent::Full). A burst of the quota does not count.
    #[must_use]
    pub fn leaky(quota: Quota, queue: usize) -> Self {
        Self::at_most(quota.burst(1)).queue(queue)
    }

    /// By any policy: a calendar day in a time zone, a sliding log, a leaky bucket with a queue.
    #[must_use]
    pub fn by(policy: &Policy) -> Self {
        let quota = policy.quota();
        if quota.is_concurrent() {
            return Self::default().concurrent(policy.limit());
        }
        let mut pace = Self::default();
        if let Some(places) = policy.queue() {
            let burst = policy.undelayed().saturating_add(1);
            pace =
                pace.and(quota.burst(burst)).queue(usize::try_from(places).unwrap_or(usize::MAX));
        } else {
            let named = Policy::builder(name(), quota).algorithm(policy.algorithm());
            // What was right by one name is right by another.
            pace.policies.extend(named.zone(policy.zone().clone()).build().ok());
        }
        for own in &mut pace.policies {
            *own = own.reduced_to(policy.percent());
        }
        pace
    }

    /// And so many, too: a call goes if all limits let it, and then all are charged.
    #[must_use]
    pub fn and(mut self, quota: Quota) -> Self {
        if quota.is_concurrent() {
            return self.concurrent(quota.count().unwrap_or(u64::MAX));
        }
        if !quota.is_unlimited() {
            let policy = Policy::builder(name(), quota).algorithm(Algorithm::TokenBucket).build();
            // A token bucket of any quota, by a name of ours: nothing about it can be wrong.
            self.policies.extend(policy.ok());
        }
        self
    }

    /// At most so many at once, until their answers have been read, or dropped.
    #[must_use]
    pub fn concurrent(mut self, most: u64) -> Self {
        self.concurrent = self.concurrent.min(most);
        self
    }

    /// At most so many wait: 1024, if left out. Who finds no place is [turned away](crate::NotSent::Full).
    #[must_use]
    pub const fn queue(mut self, places: usize) -> Self {
        self.queue = places;
        self
    }
}

/// One that no other policy has: what is counted belongs to a name.
fn name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("pace {}", NEXT.fetch_add(1, Ordering::Relaxed))
}
