//! What happened when, in few numbers: as many as a picture has columns.

/// Two counts over time, in equal parts of it. Where the end is not known before, parts grow as time goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// How long a part is, in nanoseconds.
    part: u64,
    most: usize,
    counts: Vec<Counts>,
}

/// What passed, and what did not, in a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Units that passed.
    pub passed: u64,
    /// Units that were denied.
    pub denied: u64,
}

impl Series {
    /// At most so many parts of a known time, each of a round length.
    #[must_use]
    pub fn of(length: u64, parts: usize) -> Self {
        let parts = parts.max(1);
        Self { part: round(length.div_ceil(parts as u64)), most: parts, counts: Vec::new() }
    }

    /// Parts of a second at first, and longer ones when there would be more than so many.
    #[must_use]
    pub fn growing(most: usize) -> Self {
        Self { part: 1_000_000_000, most: most.max(2), counts: Vec::new() }
    }

    /// How long a part is, in nanoseconds.
    #[must_use]
    pub const fn part(&self) -> u64 {
        self.part
    }

    /// Part by part, from the start; nothing happened after the last.
    #[must_use]
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// So many units passed.
    pub fn pass(&mut self, at: u64, units: u64) {
        if let Some(counts) = self.at(at) {
            counts.passed = counts.passed.saturating_add(units);
        }
    }

    /// So many units were denied.
    pub fn deny(&mut self, at: u64, units: u64) {
        if let Some(counts) = self.at(at) {
            counts.denied = counts.denied.saturating_add(units);
        }
    }

    fn at(&mut self, at: u64) -> Option<&mut Counts> {
        while at / self.part >= self.most as u64 {
            self.halve();
        }
        let place = usize::try_from(at / self.part).ok()?;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, Counts::default());
        }
        self.counts.get_mut(place)
    }

    /// Two parts become one.
    fn halve(&mut self) {
        self.part = self.part.saturating_mul(2);
        let add = |pair: &[Counts]| {
            pair.iter().fold(Counts::default(), |sum, one| Counts {
                passed: sum.passed.saturating_add(one.passed),
                denied: sum.denied.saturating_add(one.denied),
            })
        };
        self.counts = self.counts.chunks(2).map(add).collect();
    }
}

/// The least 1, 2 or 5 with zeros behind it that is no less.
fn round(least: u64) -> u64 {
    let mut ten: u64 = 1;
    loop {
        for part in [1, 2, 5] {
            let step = ten.saturating_mul(part);
            if step >= least {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_and_nothing_is_lost() {
        let mut series = Series::growing(4);
        for second in 0..1000_u64 {
            series.pass(second * 1_000_000_000, 2);
            series.deny(second * 1_000_000_000, 1);
        }
        assert!(series.counts().len() <= 4);
        assert_eq!(series.counts().iter().map(|counts| counts.passed).sum::<u64>(), 2000);
        assert_eq!(series.counts().iter().map(|counts| counts.denied).sum::<u64>(), 1000);
        assert_eq!(series.part(), 256_000_000_000);
    }

    #[test]
    fn parts_are_round() {
        for (least, part) in [(0, 1), (1, 1), (3, 5), (6, 10), (333, 500), (u64::MAX, u64::MAX)] {
            assert_eq!(round(least), part);
        }
    }

    #[test]
    fn a_known_time_is_cut_evenly() {
        let mut series = Series::of(100, 10);
        series.pass(0, 1);
        series.pass(99, 5);
        assert_eq!(series.counts().len(), 10);
        assert_eq!(series.counts().last().map(|counts| counts.passed), Some(5));
    }
}
