//! Parts of a policy, on the same counts.

use std::sync::Arc;

use super::{Definition, Policy, PolicyBuilder};
use crate::Consistency;

/// All of a policy, in percent.
pub(super) const WHOLE: u8 = 100;

impl Policy {
    /// How much of it there is, in percent: 100, unless it was [reduced](Self::reduced_to).
    #[must_use]
    pub fn percent(&self) -> u8 {
        self.0.definition.written.percent
    }

    /// The same, were it not [reduced](Self::reduced_to).
    #[must_use]
    pub fn whole_limit(&self) -> u64 {
        self.0.definition.written.whole_limit()
    }

    /// So many percent of this policy, on the same counts: of its limit, and of a bucket's rate. Never less than one, unless the whole is
    /// nothing.
    ///
    /// What was used stays used when a policy is exchanged for a part of it, or the other way round: windows count against another
    /// limit; under a bucket a unit takes longer to come back, and costs as much more of a depth that stays the same in time. So nothing
    /// is converted, and instances that share a store may each go by another part.
    ///
    /// ```
    /// use dashpot::{Limiter, Policy, Quota};
    ///
    /// let api = Policy::new("api", Quota::per_second(100))?;
    /// assert_eq!(api.reduced_to(80).limit(), 80);
    /// # Ok::<(), dashpot::PolicyError>(())
    /// ```
    #[must_use]
    pub fn reduced_to(&self, percent: u8) -> Self {
        let percent = percent.clamp(1, WHOLE);
        if percent == self.percent() {
            return self.clone();
        }
        let mut written = self.0.definition.written.clone();
        written.percent = percent;
        if percent != WHOLE {
            // What was taken in advance was taken of the whole.
            written.consistency = Consistency::Exact;
        }
        written.compile()
    }

    /// The definition of all of it.
    pub(crate) fn whole_definition(definition: &Arc<Definition>) -> Arc<Definition> {
        Self::from_definition(definition.clone()).reduced_to(WHOLE).0.definition.clone()
    }
}

impl Definition {
    /// Whether the two are different parts of one policy.
    pub(crate) fn is_other_part(&self, other: &Self) -> bool {
        let (one, other) = (&self.written, &other.written);
        one.percent != other.percent
            && (one.quota, one.algorithm) == (other.quota, other.algorithm)
            && (one.queue, one.undelayed) == (other.queue, other.undelayed)
            && (one.any_window, &one.zone) == (other.any_window, &other.zone)
            && one.name == other.name
    }
}

impl PolicyBuilder {
    /// So much of a count as there is of the policy; at least one, if it is not nothing.
    pub(super) fn part_of(&self, count: u64) -> u64 {
        if self.percent == WHOLE || count == 0 {
            return count;
        }
        let part = u128::from(count) * u128::from(self.percent) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(count).max(1)
    }
}
