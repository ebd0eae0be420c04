//! Whether it limits: two threads on one key, and what they got over what they should have.

use std::thread;
use std::time::{Duration, Instant};

use crate::Scale;
use crate::child::rounds;
use crate::peer::{Job, PEERS, Peer, Rate, Setup, with};
use crate::results::{self, Wanted};
use crate::table::{Table, count, most};
use crate::workload::key;

const RATES: [(&str, Rate); 2] =
    [("1000/s burst 100", Rate::new(1000, 1, 100)), ("1/h burst 1", Rate::new(1, 3600, 1))];

const TIME: Duration = Duration::from_millis(500);
const THREADS: usize = 2;

pub(crate) fn report(_: Scale) {
    let mut table = Table::new(["limit", "peer", "asked", "admitted", "bound", "excess"]);
    for (name, _) in RATES {
        let peers = rounds(1, "excess", &PEERS, &[name.to_owned()]);
        for (peer, figures) in PEERS.iter().zip(peers) {
            let (admitted, bound, asked) = (figures.get(0), figures.get(1), figures.get(2));
            let excess = most([admitted - bound, 0.0]);
            if *peer == "dashpot" {
                let work = format!("over-admission, two threads on one key, {name}");
                results::goal("also", work, Wanted::AtMost(0.0), excess, "checks");
            }
            let figures = [asked, admitted, bound, excess].map(count);
            table.row([name.to_owned(), (*peer).to_owned()].into_iter().chain(figures));
        }
    }
    table.print(
        "Over-admission",
        "Two threads on one fresh key for half a second. The bound is burst + rate × time. `asked` is how often they came to ask.",
    );
}

/// `PEER LIMIT`: admitted, the bound, and asked.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[peer, limit] = args else { panic!("wrong arguments: {args:?}") };
    let (_, rate) = RATES.into_iter().find(|(name, _)| *name == limit).expect("a limit");
    with(peer, Excess(rate))
}

struct Excess(Rate);

impl Job for Excess {
    fn run<P: Peer>(self) -> Vec<f64> {
        let peer = P::new(&Setup { rate: self.0, keys: 1, sweeping: false });
        let key = key(0);
        let start = Instant::now();
        let hammer = || {
            let (mut admitted, mut asked) = (0_u64, 0_u64);
            while start.elapsed() < TIME {
                for _ in 0..100 {
                    admitted += u64::from(peer.check(&key));
                }
                asked += 100;
            }
            (admitted, asked)
        };
        let (admitted, asked) = thread::scope(|scope| {
            let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(hammer)).collect();
            let each = running.into_iter().map(|thread| thread.join().expect("no panic"));
            each.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
        });
        let units = start.elapsed().as_nanos() / self.0.unit().as_nanos();
        vec![admitted as f64, f64::from(self.0.burst) + units as f64, asked as f64]
    }
}
