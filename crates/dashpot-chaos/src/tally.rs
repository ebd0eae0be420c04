//! How much a limit admitted, as its callers saw it, and whether that is more than it may.

use std::collections::VecDeque;

/// No call is under way for longer than this, in seconds: what was received before was sent not much earlier.
const LONGEST_CALL: f64 = 15.0;
/// Clocks of processes are told apart by so much, in seconds.
const CLOCKS: f64 = 0.002;

/// What any interval may admit: so much at once, and so much a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) capacity: f64,
    pub(crate) per_second: f64,
}

/// What intervals that touch this time may admit besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) from: f64,
    /// Not yet, if it goes on.
    pub(crate) to: Option<f64>,
    pub(crate) bound: Bound,
}

/// All that was admitted under one key.
///
/// A caller knows when it asked and when it was answered, and that it was admitted in between. So an interval
/// holds what was both asked and answered within it, which is never more than what was admitted in it.
#[derive(Debug)]
pub(crate) struct Tally {
    bound: Bound,
    admitted: u64,
    /// The most an interval used of its capacity where nothing was allowed besides.
    fullest: f64,
    /// When the latest answer came.
    latest: f64,
    starts: Vec<Start>,
    /// When those were asked and answered that were admitted of late.
    recent: VecDeque<(f64, f64)>,
    allowances: Vec<Allowance>,
}

/// An interval that began when somebody asked, and goes on.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: f64,
    admitted: u64,
}

impl Tally {
    pub(crate) fn new(bound: Bound) -> Self {
        Self {
            bound,
            admitted: 0,
            fullest: 0.0,
            latest: 0.0,
            starts: Vec::new(),
            recent: VecDeque::new(),
            allowances: Vec::new(),
        }
    }

    pub(crate) fn admitted(&self) -> u64 {
        self.admitted
    }

    pub(crate) fn bound(&self) -> Bound {
        self.bound
    }

    /// Of its capacity, where nothing was allowed besides: 1 is all.
    pub(crate) fn fullest(&self) -> f64 {
        self.fullest
    }

    /// How many were answered since then, for at most as long as calls take.
    pub(crate) fn answered_since(&self, then: f64) -> usize {
        self.recent.iter().filter(|(_, received)| *received >= then).count()
    }

    pub(crate) fn allow(&mut self, allowance: Allowance) -> usize {
        self.allowances.push(allowance);
        self.allowances.len() - 1
    }

    pub(crate) fn allow_no_more(&mut self, number: usize, now: f64) {
        if let Some(allowance) = self.allowances.get_mut(number) {
            allowance.to = Some(now);
        }
    }

    /// Notes one that was admitted, and tells if some interval admitted too much.
    pub(crate) fn admit(&mut self, sent: f64, received: f64) -> Result<(), String> {
        self.admitted += 1;
        self.latest = self.latest.max(received);
        for start in self.starts.iter_mut().filter(|start| start.at <= sent) {
            start.admitted += 1;
        }
        let within = self.recent.iter().filter(|(earlier, _)| *earlier >= sent).count() as u64;
        self.starts.push(Start { at: sent, admitted: within + 1 });
        self.recent.push_back((sent, received));
        self.forget();
        self.judge()
    }

    fn judge(&mut self) -> Result<(), String> {
        let Bound { capacity, per_second } = self.bound;
        for start in &self.starts {
            let length = self.latest - start.at + CLOCKS;
            let beyond_rate = per_second.mul_add(-length, start.admitted as f64);
            if beyond_rate <= capacity && beyond_rate <= self.fullest * capacity {
                continue;
            }
            let besides = self.besides(start.at);
            if besides == 0.0 {
                self.fullest = self.fullest.max(beyond_rate / capacity);
            }
            if beyond_rate > capacity + besides + 1e-6 {
                return Err(format!(
                    "{} admitted from {:.3} s to {:.3} s; {capacity} and {per_second}/s may be{}",
                    start.admitted,
                    start.at,
                    self.latest,
                    if besides > 0.0 {
                        format!(", and {besides:.1} besides")
                    } else {
                        String::new()
                    }
                ));
            }
        }
        Ok(())
    }

    /// What an interval from then until now may admit besides.
    fn besides(&self, start: f64) -> f64 {
        let touching = self
            .allowances
            .iter()
            .filter(|it| it.from <= self.latest && it.to.is_none_or(|to| to >= start));
        let units = touching.map(|it| {
            let to = it.to.map_or(self.latest, |to| to.min(self.latest));
            it.bound.per_second.mul_add((to - it.from).max(0.0), it.bound.capacity)
        });
        units.sum()
    }

    /// Whoever asks from now on asks within all intervals that are old enough. Of those that touch the same
    /// allowances the one that is fullest now stays so: the others need not be looked at. Those that touch more
    /// than 64 that have ended are given up, or a long soak would do little else than look at them: what exceeds only so long an
    /// interval is not seen.
    fn forget(&mut self) {
        let old = self.latest - LONGEST_CALL;
        while self.recent.front().is_some_and(|(_, received)| *received < old) {
            self.recent.pop_front();
        }
        let (mut kept, young): (Vec<Start>, Vec<Start>) =
            self.starts.iter().partition(|start| start.at < old);
        if kept.len() < 64 {
            return;
        }
        let ended = |start: &Start| {
            self.allowances.iter().filter(|it| it.to.is_some_and(|to| to < start.at)).count()
        };
        let fullness =
            |start: &Start| self.bound.per_second.mul_add(start.at, start.admitted as f64);
        kept.sort_by(|one, other| {
            ended(one).cmp(&ended(other)).then(fullness(other).total_cmp(&fullness(one)))
        });
        kept.dedup_by_key(|start| ended(start));
        // Of the latest, which touch the fewest.
        let many = kept.len().saturating_sub(64);
        kept.drain(..many);
        kept.extend(young);
        self.starts = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { capacity: 5.0, per_second: 10.0 };

    /// At moments, in hundredths of a second.
    fn admit(tally: &mut Tally, moments: impl IntoIterator<Item = u32>) -> Result<(), String> {
        moments
            .into_iter()
            .try_for_each(|at| tally.admit(f64::from(at) / 100.0, f64::from(at) / 100.0))
    }

    #[test]
    fn a_burst_and_what_comes_back_may_pass_and_no_more() {
        let mut tally = Tally::new(BOUND);
        admit(&mut tally, [0, 0, 0, 0, 0, 10, 20, 30]).unwrap();
        assert!((tally.fullest() - 1.0).abs() < 0.01, "{}", tally.fullest());
        let told = admit(&mut tally, [30]).unwrap_err();
        assert_eq!(told, "9 admitted from 0.000 s to 0.300 s; 5 and 10/s may be");
        assert!(admit(&mut Tally::new(BOUND), [500, 500, 500, 500, 500, 500]).is_err());
    }

    #[test]
    fn who_is_answered_late_may_have_been_admitted_early() {
        let mut tally = Tally::new(BOUND);
        for _ in 0..5 {
            tally.admit(0.0, 2.0).unwrap();
        }
        admit(&mut tally, [200, 200, 200, 200, 200]).unwrap();
        assert!(admit(&mut tally, [200]).is_err(), "six at one moment");
    }

    #[test]
    fn order_of_answers_does_not_matter() {
        let mut tally = Tally::new(BOUND);
        for (sent, received) in [(0.2, 0.3), (0.1, 0.31), (0.0, 0.32), (0.25, 0.26), (0.29, 0.3)] {
            tally.admit(sent, received).unwrap();
        }
        for _ in 0..3 {
            tally.admit(0.3, 0.33).unwrap();
        }
        assert!(tally.admit(0.0, 0.33).is_err(), "nine within a third of a second");
    }

    #[test]
    fn what_is_allowed_besides_counts_where_it_is_touched() {
        let mut tally = Tally::new(BOUND);
        let bound = Bound { capacity: 5.0, per_second: 0.0 };
        let number = tally.allow(Allowance { from: 0.5, to: None, bound });
        admit(&mut tally, [0; 5]).unwrap();
        admit(&mut tally, [60; 10]).unwrap();
        tally.allow_no_more(number, 0.7);
        admit(&mut tally, [120; 5]).unwrap();
        assert!(admit(&mut tally, [120]).is_err());
        // Later ones do not touch it.
        let mut later = Tally::new(BOUND);
        later.allow(Allowance { from: 0.5, to: Some(0.7), bound });
        assert!(admit(&mut later, [71; 6]).is_err());
    }

    #[test]
    fn what_is_forgotten_was_not_needed() {
        for seed in 0..40 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut tally = Tally::new(Bound { capacity: 3.0, per_second: 2.0 });
            let mut all: Vec<(f64, f64)> = Vec::new();
            let mut now = 0.0;
            for number in 0..600 {
                now += random.f64() * 0.98;
                let allowance = number % 50 == 49;
                if allowance {
                    let bound = Bound { capacity: 1.0, per_second: 0.0 };
                    tally.allow(Allowance { from: now - 0.1, to: Some(now), bound });
                }
                let call = (now - random.f64(), now);
                all.push(call);
                let exceeds = all.iter().any(|&(start, _)| {
                    let within = all.iter().filter(|(sent, _)| *sent >= start).count() as f64;
                    within
                        > 2.0f64.mul_add(now - start + CLOCKS, 3.0)
                            + tally.besides_at(start, now)
                            + 1e-6
                });
                assert_eq!(
                    tally.admit(call.0, call.1).is_err(),
                    exceeds,
                    "seed {seed}, call {number}"
                );
                if exceeds {
                    break;
                }
            }
        }
    }

    impl Tally {
        fn besides_at(&mut self, start: f64, now: f64) -> f64 {
            self.latest = now;
            self.besides(start)
        }
    }
}
