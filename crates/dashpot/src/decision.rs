//! The answer.

use std::cmp::Reverse;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::{Judged, Verdict};
use crate::{Check, Policy, Timestamp};

/// Whether it may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It passes.
    Allow,
    /// It does not, and nothing was charged.
    Deny,
}

/// How a key stands under a policy. Store authors fill it in; others read a [`PolicyStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The most the policy grants at one instant.
    pub limit: u64,
    /// What a check made at this instant could still take.
    pub remaining: u64,
    /// Nanoseconds until the key is as good as new.
    pub reset_after_nanos: u64,
    /// Nanoseconds until one unit can be taken; 0 if it can be now, `None` if nobody can know.
    pub available_after_nanos: Option<u64>,
}

/// When a denied check would pass, if nobody else asked meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After this many nanoseconds, and not one sooner.
    After(u64),
    /// When somebody gives a permit back, or when those who wait have been served: nobody knows
    /// when.
    Unknown,
    /// Never: the policy cannot grant so much at once.
    Never,
}

impl Retry {
    /// The longer of two waits.
    #[must_use]
    pub fn longest(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::After(one), Self::After(two)) => Self::After(one.max(two)),
            (Self::After(wait), Self::Unknown) | (Self::Unknown, Self::After(wait)) => {
                Self::After(wait)
            }
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }
}

/// The answer to one check: how its key stands under its policy after the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyStatus<'p> {
    policy: &'p Policy,
    standing: Standing,
    verdict: Verdict,
}

impl<'p> PolicyStatus<'p> {
    /// The policy lets it pass, to proceed after `delay_nanos`.
    #[must_use]
    pub const fn allow(policy: &'p Policy, standing: Standing, delay_nanos: u64) -> Self {
        Self { policy, standing, verdict: Verdict::Allow { delay: delay_nanos } }
    }

    /// The policy does not let it pass.
    #[must_use]
    pub const fn deny(policy: &'p Policy, standing: Standing, retry: Retry) -> Self {
        Self { policy, standing, verdict: Verdict::Deny(retry) }
    }

    /// The same status of a policy that is only a [share](Policy::share) of the whole: what it can never
    /// grant the whole may, nobody knows when.
    #[must_use]
    pub const fn for_now(mut self) -> Self {
        if let Verdict::Deny(Retry::Never) = self.verdict {
            self.verdict = Verdict::Deny(Retry::Unknown);
        }
        self
    }

    const fn denied(&self) -> Option<Retry> {
        match self.verdict {
            Verdict::Allow { .. } => None,
            Verdict::Deny(retry) => Some(retry),
        }
    }

    /// The policy that was asked.
    #[must_use]
    pub const fn policy(&self) -> &'p Policy {
        self.policy
    }

    /// What this policy says. It may allow while the decision is a denial, because another denied.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.verdict {
            Verdict::Allow { .. } => Outcome::Allow,
            Verdict::Deny(_) => Outcome::Deny,
        }
    }

    /// How the key stands, as the store filled it in.
    #[must_use]
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// Whether this policy does not let it pass.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        matches!(self.verdict, Verdict::Deny(_))
    }

    /// The most the policy grants at one instant: a bucket's capacity, a window's count.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.standing.limit
    }

    /// What could still be taken at this instant.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.standing.remaining
    }

    /// Until the key is as good as new. Zero for concurrency, which runs by no clock.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        Duration::from_nanos(self.standing.reset_after_nanos)
    }

    /// On a denial, the smallest wait after which the same check would pass if nobody else asked:
    /// waiting that long is enough, a nanosecond less is not. `None` if there is no such wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Deny(Retry::After(nanos)) => Some(Duration::from_nanos(nanos)),
            _ => None,
        }
    }

    /// Until one unit can be taken: zero while something remains, `None` if there is no such wait.
    #[must_use]
    pub fn available_after(&self) -> Option<Duration> {
        self.standing.available_after_nanos.map(Duration::from_nanos)
    }

    /// How long to hold the request before it proceeds: a queue's wait, else zero.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        match self.verdict {
            Verdict::Allow { delay } => Duration::from_nanos(delay),
            Verdict::Deny(_) => Duration::ZERO,
        }
    }

    /// Whether the policy can never grant so much: waiting does not help.
    #[must_use]
    pub const fn is_never(&self) -> bool {
        matches!(self.verdict, Verdict::Deny(Retry::Never))
    }
}

/// The answer to all checks of one call: every cost was taken, or none was.
///
/// `statuses()[i]` answers the `i`-th check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a decision that nobody looks at limits nothing"]
pub struct Decision<'p> {
    at: Timestamp,
    outcome: Outcome,
    statuses: Statuses<'p>,
}

/// When a check was charged, and which permit it got: for stores on several machines, each with a
/// clock of its own, and for those that number permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The policy it was charged to.
    pub policy: Policy,
    /// The key it was charged to.
    pub key: Box<[u8]>,
    /// When.
    pub at: Timestamp,
    /// The number of the permit, or 0.
    pub permit: u64,
}

/// One for each check. A single one is by far the most frequent, and written in place.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "few checks are answered without the heap")]
enum Statuses<'p> {
    One(PolicyStatus<'p>),
    Several(SmallVec<[PolicyStatus<'p>; 4]>),
    /// With more to say, as a store in memory never has. (To drop an `Arc` takes hardly any code where it
    /// is done, and decisions are dropped all the time.)
    More(Arc<More<'p>>),
}

#[derive(Clone, Debug, Default)]
struct More<'p> {
    statuses: Vec<PolicyStatus<'p>>,
    is_degraded: bool,
    receipts: Vec<Receipt>,
}

impl<'p> Statuses<'p> {
    fn as_slice(&self) -> &[PolicyStatus<'p>] {
        match self {
            Self::One(status) => slice::from_ref(status),
            Self::Several(statuses) => statuses,
            Self::More(more) => &more.statuses,
        }
    }

    fn more(&self) -> Option<&More<'p>> {
        match self {
            Self::More(more) => Some(more),
            Self::One(_) | Self::Several(_) => None,
        }
    }

    /// The same with more to say.
    fn and_more(&self, say: impl FnOnce(&mut More<'p>)) -> Self {
        let mut more = match self.more() {
            Some(more) => more.clone(),
            None => More { statuses: self.as_slice().to_vec(), ..More::default() },
        };
        say(&mut more);
        Self::More(Arc::new(more))
    }
}

impl PartialEq for Statuses<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Statuses<'_> {}

impl<'p> Decision<'p> {
    /// Puts the statuses of one call together; one denial denies it all.
    pub fn new(at: Timestamp, statuses: impl IntoIterator<Item = PolicyStatus<'p>>) -> Self {
        let statuses: SmallVec<[PolicyStatus<'p>; 4]> = statuses.into_iter().collect();
        let denied = statuses.iter().any(PolicyStatus::is_denied);
        let outcome = if denied { Outcome::Deny } else { Outcome::Allow };
        Self::made(at, outcome, Statuses::Several(statuses))
    }

    #[inline(always)]
    fn made(at: Timestamp, outcome: Outcome, statuses: Statuses<'p>) -> Self {
        Self { at, outcome, statuses }
    }

    /// The same decision, by something that stood in for a store that could not answer.
    pub fn degraded(mut self) -> Self {
        self.statuses = self.statuses.and_more(|more| more.is_degraded = true);
        self
    }

    /// The same decision with receipts, one for each check that needs one.
    pub fn with_receipts(mut self, receipts: Vec<Receipt>) -> Self {
        self.statuses = self.statuses.and_more(|more| more.receipts = receipts);
        self
    }

    /// Whether something else stood in for a store that could not answer.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.statuses.more().is_some_and(|more| more.is_degraded)
    }

    /// When a check was charged, and the number of its permit.
    #[must_use]
    pub fn charged(&self, check: &Check<'_, '_>) -> (Timestamp, u64) {
        let is_its = |receipt: &&Receipt| {
            receipt.policy.same_counters(check.policy) && *receipt.key == *check.key.as_bytes()
        };
        let mut receipts = self.statuses.more().into_iter().flat_map(|more| &more.receipts);
        receipts.find(is_its).map_or((self.at, 0), |receipt| (receipt.at, receipt.permit))
    }

    /// The answer to a single check.
    #[inline]
    pub(crate) fn one(at: Timestamp, policy: &'p Policy, judged: Judged) -> Self {
        let Judged { verdict, standing } = judged;
        let status = PolicyStatus { policy, standing, verdict };
        Self::made(at, status.outcome(), Statuses::One(status))
    }

    /// The answers to one to four checks.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is a first, and no index beyond the last")]
    pub(crate) fn few<const N: usize>(
        at: Timestamp,
        checks: &[Check<'p, '_>; N],
        judged: &[Judged; N],
    ) -> Self {
        const { assert!(0 < N && N <= 4) }
        let is_allowed = judged.iter().all(Judged::is_allowed);
        let outcome = if is_allowed { Outcome::Allow } else { Outcome::Deny };
        // Those beyond are not seen. Pushing one after another would take longer than to decide.
        let statuses = std::array::from_fn(|index| {
            let index = index.min(N - 1);
            let Judged { verdict, standing } = judged[index];
            PolicyStatus { policy: checks[index].policy, standing, verdict }
        });
        Self::made(at, outcome, Statuses::Several(SmallVec::from_buf_and_len(statuses, N)))
    }

    /// The store's time when it decided.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        self.at
    }

    /// Whether everything was taken.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether everything was taken.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.outcome == Outcome::Allow
    }

    /// One status per check, in the order they were asked.
    #[must_use]
    pub fn statuses(&self) -> &[PolicyStatus<'p>] {
        self.statuses.as_slice()
    }

    /// Every check that denied.
    pub fn denied(&self) -> impl Iterator<Item = &PolicyStatus<'p>> {
        self.statuses().iter().filter(|status| status.is_denied())
    }

    /// On a denial, the check with the longest wait among those that denied, the first of equals:
    /// the one to wait for.
    #[must_use]
    pub fn denier(&self) -> Option<&PolicyStatus<'p>> {
        // Any wait is longer than an unknown one, and never is longer than any.
        self.denied().min_by_key(|status| Reverse((status.is_never(), status.retry_after())))
    }

    /// On a denial, the longest wait among those that denied. `None` if one of them can never
    /// grant it, or no wait is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let waits = self.denied().filter_map(PolicyStatus::denied);
        match waits.reduce(Retry::longest)? {
            Retry::After(nanos) => Some(Duration::from_nanos(nanos)),
            Retry::Unknown | Retry::Never => None,
        }
    }

    /// Whether waiting does not help: a policy can never grant so much.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.statuses().iter().any(PolicyStatus::is_never)
    }

    /// How long to hold an allowed request before it proceeds: the longest delay of all queues.
    #[must_use]
    pub fn delay(&self) -> Duration {
        match self.outcome {
            Outcome::Allow => {
                self.statuses().iter().map(PolicyStatus::delay).max().unwrap_or_default()
            }
            Outcome::Deny => Duration::ZERO,
        }
    }
}
