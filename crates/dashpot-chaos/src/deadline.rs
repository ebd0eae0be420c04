//! How often answers come after their deadline.

/// The rule file's `deadline`, in seconds.
pub(crate) const DEADLINE: f64 = 0.05;
/// What no answer takes besides, on a busy machine.
pub(crate) const SLACK: f64 = 0.35;
/// What few do: who waits for longer than the deadline, always a little, is within the other.
const SOON: f64 = 0.1;
/// So few, of all.
const SHARE: f64 = 0.002;
/// One moment in which the machine does something else makes that many late.
const FEW: f64 = 5.0;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadlines {
    asked: u64,
    late: u64,
}

impl Deadlines {
    /// An answer that took so long beyond what it may wait by itself, and beyond what the machine was late.
    pub(crate) fn note(&mut self, seconds: f64) {
        self.asked += 1;
        self.late += u64::from(seconds > DEADLINE + SOON);
    }

    /// What is wrong with them, if anything is.
    pub(crate) fn judge(self) -> Result<(), String> {
        if self.late as f64 > (self.asked as f64).mul_add(SHARE, FEW) {
            return Err(format!("answers come after their deadline too often: {self}"));
        }
        Ok(())
    }
}

impl std::fmt::Display for Deadlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { asked, late } = self;
        write!(f, "{late} of {asked} were answered more than {:.0} ms late", SOON * 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_may_be_late_and_no_more() {
        let judged = |late: usize, all: usize| {
            let mut deadlines = Deadlines::default();
            (0..all).for_each(|call| deadlines.note(if call < late { 0.16 } else { 0.14 }));
            deadlines.judge()
        };
        judged(0, 0).unwrap();
        judged(25, 10_000).unwrap();
        assert!(judged(26, 10_000).is_err());
        let told = judged(300, 10_000).unwrap_err();
        assert!(told.ends_with("300 of 10000 were answered more than 100 ms late"), "{told}");
    }
}
