//! What others have leased of a bucket, as its state tells it: see `lua/held.lua`.

use dashpot::Rate;
use smallvec::SmallVec;

/// A lease that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lease {
    units: u64,
    /// How long its units take, in grains.
    grains: u128,
    /// When it ends, in microseconds.
    ends: u64,
}

/// The leases that are out of a key, in the order in which they end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held(SmallVec<[Lease; 0]>);

/// How a bucket stands among leases. Moments are grains since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Among {
    /// When it is full by what was counted, if nobody gives anything back.
    pub(crate) full_at: u128,
    /// When it is as good as new: all leases have ended by then.
    pub(crate) new_at: u128,
}

impl Held {
    /// The leases of a bucket of this rate, as they are written behind it; or of a window, of which only the units
    /// matter.
    pub(crate) fn parse(text: &str, rate: Option<Rate>) -> Option<Self> {
        let lease = |text: &str| {
            let mut parts = text.split(',').skip(1).map(|number| number.parse::<u64>().ok());
            let mut next = || parts.next().flatten();
            let (units, micros, grains, ends) = (next()?, next()?, next()?, next()?);
            let per_micro = rate.map_or(0, |rate| u128::from(rate.units) * 1000);
            let grains = u128::from(micros) * per_micro + u128::from(grains);
            Some(Lease { units, grains, ends })
        };
        let all = text.strip_prefix('|').unwrap_or(text).split_terminator(';');
        all.map(lease).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many units are out at this moment, in nanoseconds.
    pub(crate) fn out(&self, now: u64) -> u64 {
        self.0.iter().filter(|lease| lease.ends > now / 1000).map(|lease| lease.units).sum()
    }

    /// How a bucket stands at this moment, in grains, that was to be full then.
    pub(crate) fn among(&self, now: u128, full_at: u128, rate: Rate) -> Among {
        let per_micro = u128::from(rate.units) * 1000;
        let mut full_at = full_at.max(now);
        let mut out: u128 = self.0.iter().map(|lease| lease.grains).sum();
        let mut at_now = None;
        for lease in &self.0 {
            let ends = u128::from(lease.ends) * per_micro;
            if ends > now && at_now.is_none() {
                at_now = Some(full_at.max(now + out));
            }
            full_at = full_at.max(ends + out);
            out -= lease.grains;
        }
        Among { full_at: at_now.unwrap_or(full_at), new_at: full_at }
    }

    /// When so many units could be taken, with this capacity, if nobody gives anything back: leases may have to end
    /// first. Moments are grains.
    pub(crate) fn room_at(
        &self,
        now: u128,
        full_at: u128,
        (units, capacity): (u64, u64),
        rate: Rate,
    ) -> u128 {
        let per_micro = u128::from(rate.units) * 1000;
        let takes = |units: u64| u128::from(units) * u128::from(rate.nanos);
        let (mut at, mut full_at) = (now, full_at.max(now));
        let mut out: u128 = self.0.iter().map(|lease| lease.grains).sum();
        for lease in &self.0 {
            let ends = u128::from(lease.ends) * per_micro;
            if ends > now && out + takes(units) <= takes(capacity) {
                break;
            }
            full_at = full_at.max(ends + out);
            out -= lease.grains;
            at = at.max(ends);
        }
        let room = takes(capacity).saturating_sub(takes(units));
        at.max(full_at.saturating_sub(room))
    }
}
