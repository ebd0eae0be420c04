//! How long a single check takes while keys come that were never seen: what growing and sweeping
//! cost the one who happens to be there.

use std::thread::sleep;
use std::time::Duration;

use hdrhistogram::Histogram;
use quanta::Clock;

use crate::Scale;
use crate::child::rounds;
use crate::machine::resident;
use crate::peer::{Job, Peer, Rate, Setup, Usage, with};
use crate::results::{self, Wanted};
use crate::table::{Table, count, number};
use crate::workload::Newcomers;

/// `nothing` shows what the machine alone does to such a loop.
const SUBJECTS: [&str; 6] = ["dashpot", "governor", "dashmap", "throttlecrab", "sketch", "nothing"];

/// How often a peer that does not sweep by itself is told to, in insertions.
const HOUSEKEEP_EVERY: usize = 500_000;

/// How long the first crowd is left alone: until its keys are as good as new, after a tenth of a second, and have been for longer than
/// dashpot keeps those who may be back soon.
const IDLE: Duration = Duration::from_millis(1500);

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

pub(crate) fn report(scale: Scale) {
    let (keys, times) = match scale {
        Scale::Quick => (1_000_000, 1),
        Scale::Usual => (2_000_000, 3),
        Scale::Full => (10_000_000, 3),
    };
    one(
        "fill",
        keys,
        times,
        &format!("Filling, from 0 to {} keys", count(keys as f64)),
        "Nanoseconds of each single insertion; no key ever goes idle. The sketch has its full size \
         from the start. `nothing` is the loop without a limiter: what it shows, the machine did. \
         Wanted: p99.99 below 100 000.",
    );
    one(
        "sweep",
        keys,
        times,
        &format!("Sweeping, {} keys in the place of as many that are idle", count(keys as f64)),
        "The same of a second crowd, when all of a first one, as large, have been as good as new for more than a second. governor \
         and the map sweep when they are told to, here every 500 000 insertions; throttlecrab every half second. `keys` is \
         what is still held at the end, `swept` what dashpot tells to have forgotten; the sketch holds everything.",
    );
}

fn one(mode: &str, keys: usize, times: usize, heading: &str, note: &str) {
    let quantiles = QUANTILES.map(|(name, _)| name);
    let rest = ["mean", "keys", "moved", "swept", "MiB"];
    let mut table = Table::new(["limiter"].into_iter().chain(quantiles).chain(rest));
    let args = [keys.to_string(), mode.to_owned()];
    for (subject, figures) in SUBJECTS.iter().zip(rounds(times, "fill", &SUBJECTS, &args)) {
        if *subject == "dashpot" {
            let work = format!("p99.99 of a check, {heading}");
            // Who did not sweep has shown nothing.
            let has_swept = mode == "fill" || figures.get(8) > 0.0;
            let micros = if has_swept { figures.get(3) / 1000.0 } else { f64::NAN };
            results::goal("P2", work.to_lowercase(), Wanted::AtMost(100.0), micros, "µs");
        }
        let mut cells = vec![(*subject).to_owned()];
        cells.extend((0..=5).map(|figure| number(figures.get(figure))));
        cells.extend((6..=8).map(|figure| count(figures.get(figure))));
        cells.push(number(figures.get(9)));
        table.row(cells);
    }
    table.print(heading, note);
}

/// `SUBJECT KEYS MODE`: the quantiles, the mean, keys held, keys moved, keys swept, MiB grown.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[subject, keys, mode] = args else { panic!("wrong arguments: {args:?}") };
    with(subject, Fill { keys: keys.parse().expect("a number of keys"), sweeping: mode == "sweep" })
}

struct Fill {
    keys: usize,
    sweeping: bool,
}

impl Job for Fill {
    fn run<P: Peer>(self) -> Vec<f64> {
        let clock = Clock::new();
        let minute = 60_000_000_000;
        let mut times = Histogram::<u64>::new_with_max(minute, 3).expect("three digits are few");
        let mut newcomers = Newcomers::new();
        let before = resident();
        let rate = if self.sweeping { Rate::new(10, 1, 10) } else { Rate::STRICT };
        let crowds = if self.sweeping { 2 } else { 1 };
        let peer = P::new(&Setup { rate, keys: crowds * self.keys, sweeping: self.sweeping });

        for crowd in 1..=crowds {
            let mut inserted = 0;
            while inserted < self.keys {
                for key in newcomers.next().iter().take(self.keys - inserted) {
                    let start = clock.raw();
                    if self.sweeping && inserted % HOUSEKEEP_EVERY == HOUSEKEEP_EVERY - 1 {
                        peer.housekeep();
                    }
                    let allowed = peer.check(key);
                    times.saturating_record(clock.delta_as_nanos(start, clock.raw()));
                    assert!(allowed, "a newcomer is allowed");
                    inserted += 1;
                }
            }
            if crowd < crowds {
                sleep(IDLE);
                times.reset();
            }
        }

        let Usage { keys, moved, reclaimed, .. } = peer.usage();
        let grown = (resident() - before) / f64::from(1 << 20);
        let quantiles = QUANTILES.map(|(_, quantile)| times.value_at_quantile(quantile) as f64);
        quantiles.into_iter().chain([times.mean(), keys, moved, reclaimed, grown]).collect()
    }
}
