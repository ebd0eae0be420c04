//! Somebody makes up keys, more than there is room for: what happens to memory, to those who are
//! limited, and to those who are new.

use std::time::{Duration, Instant};

use crate::Scale;
use crate::child::rounds;
use crate::machine::resident;
use crate::peer::{Job, Peer, Rate, Setup, Usage, with};
use crate::results::{self, Wanted};
use crate::table::{Table, count, number};
use crate::workload::{Newcomers, key};

/// The most keys dashpot may hold here.
pub(crate) const CAP: u64 = 1_000_000;

/// Keys that have used up everything before the flood comes.
const LIMITED: u64 = 1000;

/// Figures are taken after so many newcomers.
const STEP: usize = 1_000_000;

/// A newcomer takes one of two, and is not as good as new for two seconds, in which there come more than there
/// is room for.
const RATE: Rate = Rate::new(2, 4, 2);

/// governor and throttlecrab have no cap to set.
const SUBJECTS: [&str; 3] = ["capped", "governor", "throttlecrab"];

pub(crate) fn report(scale: Scale) {
    let steps = if scale == Scale::Quick { 2 } else { 5 };
    let heads = ["limiter", "newcomers", "MiB", "admitted", "got too much", "ns per check"];
    let tail = ["keys", "reclaimed", "overflowed"];
    let mut table = Table::new(heads.into_iter().chain(tail));
    let all = rounds(1, "flood", &SUBJECTS, &[steps.to_string()]);
    for (subject, figures) in SUBJECTS.iter().zip(all) {
        if *subject == "capped" {
            let last = (steps - 1) * 7;
            let grown = figures.get(last) / figures.get(0);
            let flat = Wanted::AtMost(1.05);
            results::goal("P4", "memory after the flood", flat, grown, "× that at the cap");
            let none = Wanted::AtMost(0.0);
            results::goal(
                "P4",
                "limited who got too much",
                none,
                figures.get(last + 2),
                "of 1000 keys",
            );
            // Since there was no room any more. What a million of them takes is less than a unit of this rate, so there are
            // millions of whom nobody can pass.
            let beyond = || (1..steps).map(|step| step * 7);
            let admitted: f64 = beyond().map(|step| figures.get(step + 1)).sum();
            let seconds: f64 = beyond().map(|step| figures.get(step + 3) * STEP as f64 / 1e9).sum();
            let some = Wanted::AtLeast(1.0);
            let work = "newcomers admitted since there was no room";
            results::goal("P4", work, some, admitted / seconds, "a second");
        }
        for step in 0..steps {
            let figure = |index| figures.get(step * 7 + index);
            let admitted = format!("{:.2} %", figure(1) / STEP as f64 * 100.0);
            let greedy = format!("{} of {LIMITED}", figure(2));
            let name = if *subject == "capped" { "dashpot" } else { subject };
            let mut cells = vec![name.to_owned(), count(((step + 1) * STEP) as f64)];
            cells.extend([number(figure(0)), admitted, greedy, number(figure(3))]);
            cells.extend([count(figure(4)), count(figure(5)), count(figure(6))]);
            table.row(cells);
        }
    }
    table.print(
        &format!("Key flood against a cap of {}", count(CAP as f64)),
        "1000 keys have used up all they may; then come newcomers, each once, under 2 in 4 s with a \
         burst of 2. Memory is growth since before the flood. Admitted is of the last million. After each, \
         those 1000 ask for all they can get: too much is more than the burst and what has come back since \
         they began. Wanted: memory flat once the cap is reached, and nobody forgotten.",
    );
}

/// `SUBJECT STEPS`: for each step MiB grown, admitted, limited keys that got too much, nanoseconds per
/// check, keys held, reclaimed, overflowed.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[subject, steps] = args else { panic!("wrong arguments: {args:?}") };
    with(subject, Flood { steps: steps.parse().expect("a number of steps") })
}

struct Flood {
    steps: usize,
}

impl Job for Flood {
    fn run<P: Peer>(self) -> Vec<f64> {
        let peer = P::new(&Setup { rate: RATE, keys: CAP as usize, sweeping: false });
        // Numbers that no newcomer gets to.
        let mut limited: Vec<(String, u32)> =
            (0..LIMITED).map(|number| (key(90_000_000 + number), 0)).collect();
        let began = Instant::now();
        let mut drain = || {
            let mut greedy = 0;
            for (key, granted) in &mut limited {
                while peer.check(key) {
                    *granted += 1;
                }
                let back = began.elapsed().as_nanos() / RATE.unit().as_nanos();
                greedy += usize::from(u128::from(*granted) > u128::from(RATE.burst) + back);
            }
            greedy as f64
        };
        drain();

        let mut newcomers = Newcomers::new();
        let before = resident();
        let mut figures = Vec::new();
        for _ in 0..self.steps {
            let (mut time, mut asked, mut admitted) = (Duration::ZERO, 0, 0);
            while asked < STEP {
                let batch = newcomers.next();
                let batch = &batch[..batch.len().min(STEP - asked)];
                let start = Instant::now();
                admitted += batch.iter().filter(|key| peer.check(key)).count();
                time += start.elapsed();
                asked += batch.len();
            }
            let grown = (resident() - before) / f64::from(1 << 20);
            let greedy = drain();
            let each = time.as_nanos() as f64 / STEP as f64;
            let Usage { keys, reclaimed, overflowed, .. } = peer.usage();
            figures.extend([grown, admitted as f64, greedy, each]);
            figures.extend([keys, reclaimed, overflowed]);
        }
        figures
    }
}
