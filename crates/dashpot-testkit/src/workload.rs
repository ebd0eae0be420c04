//! Deterministic streams of arrivals: the same seed gives the same stream on every machine.
//!
//! Every stream is endless; `take` what you need.

use std::time::Duration;

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the start of the workload; never earlier than the one before.
    pub at: Duration,
    /// Whose, as a number below the number of keys.
    pub key: usize,
    /// How many units.
    pub cost: u64,
}

/// Every key is as busy as any other. Gaps are anything up to twice `mean_gap`.
///
/// # Panics
/// If there are no keys.
pub fn uniform(seed: u64, keys: usize, mean_gap: Duration) -> impl Iterator<Item = Arrival> {
    assert!(keys > 0, "a workload has keys");
    let mut random = SplitMix(seed);
    arrivals(seed, mean_gap, move || random.below(keys as u64) as usize)
}

/// Few keys are busy and most are idle: the `n`-th is asked for in proportion to n<sup>−s</sup>,
/// with `s` around 1 for users and addresses in the wild. Gaps are anything up to twice `mean_gap`.
///
/// # Panics
/// If there are no keys.
pub fn zipf(seed: u64, keys: usize, s: f64, mean_gap: Duration) -> impl Iterator<Item = Arrival> {
    assert!(keys > 0, "a workload has keys");
    let mut total = 0.0;
    let mut up_to = Vec::with_capacity(keys);
    for rank in 1..=keys {
        total += (rank as f64).powf(-s);
        up_to.push(total);
    }
    let mut random = SplitMix(seed);
    arrivals(seed, mean_gap, move || {
        let point = random.fraction() * total;
        up_to.partition_point(|&end| end <= point).min(keys - 1)
    })
}

/// One key at a time asks `size` times at one instant, then all is silent for `pause`.
///
/// # Panics
/// If there are no keys, or bursts of none.
pub fn bursts(
    seed: u64,
    keys: usize,
    size: usize,
    pause: Duration,
) -> impl Iterator<Item = Arrival> {
    assert!(keys > 0 && size > 0, "a burst is made by somebody");
    let mut random = SplitMix(seed);
    (0_u32..).flat_map(move |burst| {
        let key = random.below(keys as u64) as usize;
        let at = pause * burst;
        std::iter::repeat_n(Arrival { at, key, cost: 1 }, size)
    })
}

/// One key asks `size` times in the last nanosecond before every boundary of `window`, and `size`
/// times right on it: what hurts a fixed window most.
///
/// # Panics
/// If the window has no length.
pub fn boundary_attack(window: Duration, size: usize) -> impl Iterator<Item = Arrival> {
    assert!(!window.is_zero(), "a window has a length");
    (1_u32..).flat_map(move |boundary| {
        let after = window * boundary;
        let before = after - Duration::from_nanos(1);
        let burst = move |at| std::iter::repeat_n(Arrival { at, key: 0, cost: 1 }, size);
        burst(before).chain(burst(after))
    })
}

fn arrivals(
    seed: u64,
    mean_gap: Duration,
    mut key: impl FnMut() -> usize,
) -> impl Iterator<Item = Arrival> {
    // Another stream than the keys', so that when does not depend on who.
    let mut random = SplitMix(!seed);
    let widest = u64::try_from(mean_gap.as_nanos() * 2).unwrap_or(u64::MAX - 1);
    let mut at = Duration::ZERO;
    std::iter::repeat_with(move || {
        at += Duration::from_nanos(random.below(widest + 1));
        Arrival { at, key: key(), cost: 1 }
    })
}

/// Steele, Lea and Flood's SplitMix64: small, fast, and good enough to pick keys.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 up to but not including 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP: Duration = Duration::from_millis(1);

    fn counts(arrivals: impl Iterator<Item = Arrival>, keys: usize) -> Vec<u32> {
        let mut counts = vec![0; keys];
        arrivals.take(100_000).for_each(|arrival| counts[arrival.key] += 1);
        counts
    }

    #[test]
    fn a_seed_names_one_stream() {
        let take = |seed| uniform(seed, 10, GAP).take(100).collect::<Vec<_>>();
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn uniform_keys_are_equally_busy_and_gaps_have_their_mean() {
        let counts = counts(uniform(7, 10, GAP), 10);
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");

        let end = uniform(7, 10, GAP).nth(99_999).unwrap().at;
        assert!((98..102).contains(&end.as_secs()), "{end:?}");
    }

    #[test]
    fn zipf_keys_are_busy_by_rank() {
        let counts = counts(zipf(7, 1000, 1.0, GAP), 1000);
        // The thousandth harmonic number is 7.485, so the first key gets 1 in 7.485.
        assert!((12_900..13_900).contains(&counts[0]), "{}", counts[0]);
        assert!((6_300..7_100).contains(&counts[1]), "{}", counts[1]);
        assert!((1_150..1_550).contains(&counts[9]), "{}", counts[9]);
    }

    #[test]
    fn a_burst_is_one_key_at_one_instant() {
        let arrivals: Vec<_> = bursts(7, 100, 5, GAP).take(500).collect();
        for (number, burst) in (0_u32..).zip(arrivals.chunks(5)) {
            assert_eq!(burst[0].at, GAP * number);
            assert!(burst.iter().all(|arrival| *arrival == burst[0]));
        }
    }

    #[test]
    fn a_boundary_attack_straddles_every_boundary() {
        let nanos: Vec<_> = boundary_attack(GAP, 2).take(8).map(|one| one.at.as_nanos()).collect();
        let (one, two) = (1_000_000, 2_000_000);
        assert_eq!(nanos, [one - 1, one - 1, one, one, two - 1, two - 1, two, two]);
    }

    #[test]
    fn time_never_runs_backwards() {
        let ordered = |arrivals: Vec<Arrival>| arrivals.is_sorted_by_key(|arrival| arrival.at);
        assert!(ordered(uniform(7, 3, GAP).take(1000).collect()));
        assert!(ordered(zipf(7, 3, 1.2, GAP).take(1000).collect()));
        assert!(ordered(bursts(7, 3, 4, GAP).take(1000).collect()));
        assert!(ordered(boundary_attack(GAP, 4).take(1000).collect()));
    }
}
