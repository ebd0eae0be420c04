//! How long a check takes: few keys and many, allowed and denied, one thread and two.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::child::{Medians, rounds};
use crate::peer::{Job, Peer, Rate, Setup, TIMED, with};
use crate::results::{self, Wanted};
use crate::table::{Table, count, least, most, number, peer_cells, peer_heads, ratio};
use crate::workload::{Layout, Workload};
use crate::{Scale, machine};

const MIXES: [&str; 2] = ["allow", "deny"];
const THREADS: usize = 2;

/// Checks to find out how many fit into the time there is.
const TRIAL: usize = 50_000;

pub(crate) fn report(scale: Scale) {
    let lead = ["keys", "mix", "threads", "cpu"].map(str::to_owned);
    let mut times = Table::new(lead.into_iter().chain(peer_heads(&TIMED)));
    let mut totals = Table::new(["keys", "mix"].into_iter().chain(TIMED));
    let mut standing = Standing::default();
    for (keys, layout) in sizes(scale) {
        for mix in MIXES {
            let peers = peers(scale, keys, &args(keys, mix, layout));
            standing.note(keys, &peers);
            if keys == 1 && mix == "deny" {
                // Threads that write what they share wait for each other.
                let shared = peers[0].get(1) / peers[0].get(0);
                let work = "a denied key, two threads at once";
                results::goal("P1", work, Wanted::AtMost(1.2), shared, "× the time of one");
            }
            if keys == 1000 && mix == "allow" {
                picture(&peers);
            }
            let keys = match layout {
                Layout::Scattered => count(keys as f64),
                Layout::AtHand => format!("{}, {}", count(keys as f64), layout.name()),
            };
            for threads in 1..=THREADS {
                let share = peers.iter().map(|peer| peer.get(THREADS + threads));
                let share = format!("{:.0} %", share.fold(1.0, f64::min) * 100.0);
                let lead = [keys.clone(), mix.to_owned(), threads.to_string(), share];
                times.row(lead.into_iter().chain(peer_cells(&peers, threads - 1)));
            }
            let total = peers.iter().map(|peer| number(peer.get(THREADS)));
            totals.row([keys, mix.to_owned()].into_iter().chain(total));
        }
    }
    times.print(
        "Time of a check",
        "Nanoseconds per check and thread. One key and two threads is the hot key. `at hand`: the \
         keys lie in the order in which they are asked about, so that only the limiter's memory is \
         far; else a key is itself fetched from anywhere first. `cpu` is how much of the time the \
         threads had a core, for the peer that had least: below 90 % somebody else was at work, and \
         two threads were not always two. Wanted: governor at 2.5 or more; the \
         sketch at 0.71 or more for 1 and 1000 keys.",
    );
    totals.print("Throughput of two threads", "Million checks a second, both together.");
    standing.tell();
}

/// The figures of everybody in [`TIMED`]. Ten million keys take minutes: unless there is time, only governor is asked about them.
fn peers(scale: Scale, keys: usize, args: &[String]) -> Vec<Medians> {
    let many = keys > 1_000_000 && scale < Scale::Full;
    let asked: Vec<&str> =
        TIMED.into_iter().filter(|peer| !many || ["dashpot", "governor"].contains(peer)).collect();
    let mut told = rounds(round_count(scale, keys), "speed", &asked, args).into_iter();
    let figures = |peer| if asked.contains(peer) { told.next() } else { None };
    TIMED.iter().map(figures).map(Option::unwrap_or_default).collect()
}

/// How far ahead dashpot is where it is least so.
#[derive(Default)]
struct Standing(Vec<(usize, f64, f64)>);

impl Standing {
    fn note(&mut self, keys: usize, peers: &[Medians]) {
        let of = |name| TIMED.iter().position(|peer| *peer == name).map_or(0, |index| index);
        for threads in 0..THREADS {
            let figure = |name| peers[of(name)].get(threads);
            let own = figure("dashpot");
            self.0.push((keys, figure("governor") / own, own / figure("sketch")));
        }
    }

    fn tell(&self) {
        let ahead = |from: usize, to: usize| {
            let within = self.0.iter().filter(|(keys, ..)| (from..=to).contains(keys));
            least(within.map(|(_, ratio, _)| *ratio))
        };
        let few = self.0.iter().filter(|(keys, ..)| *keys <= 1000);
        let slowest = most(few.map(|(.., ratio)| *ratio));
        let governor = Wanted::AtLeast(2.5);
        let unit = "× governor";
        results::goal("P1", "1 and 1000 keys, least of 8", governor, ahead(1, 1000), unit);
        let sketch = Wanted::AtMost(1.4);
        results::goal("P1", "1 and 1000 keys, most of 8", sketch, slowest, "× the sketch's time");
        let million = 1_000_000;
        results::goal("P2", "a million keys", governor, ahead(million, million), unit);
        if self.0.iter().any(|(keys, ..)| *keys > million) {
            results::goal(
                "P2",
                "10 million keys",
                governor,
                ahead(10 * million, 10 * million),
                unit,
            );
        }
    }
}

fn picture(peers: &[Medians]) {
    let governor = TIMED.iter().position(|peer| *peer == "governor");
    results::rate("governor", governor.map_or(f64::NAN, |governor| 1e9 / peers[governor].get(0)));
    let bars = TIMED.iter().zip(peers).map(|(name, figures)| ((*name).to_owned(), figures.get(0)));
    results::chart("speed", "A check on one of 1000 keys", "nanoseconds, less is better", bars);
}

/// Several limits at once against one.
pub(crate) fn report_three(scale: Scale) {
    let subjects = ["one limit", "three limits"];
    let mut table = Table::new(["keys", "mix", "one limit", "three limits", "three ÷ one"]);
    let mut ratios = Vec::new();
    for keys in [1, 1000, 1_000_000] {
        if keys > 1000 && scale < Scale::Full {
            continue;
        }
        for mix in MIXES {
            let args = args(keys, mix, Layout::Scattered);
            let both = rounds(round_count(scale, keys), "speed", &subjects, &args);
            let (one, three) = (both[0].get(0), both[1].get(0));
            ratios.push(three / one);
            let lead = [count(keys as f64), mix.to_owned()];
            let figures = [number(one), number(three), ratio(three, one)];
            table.row(lead.into_iter().chain(figures));
        }
    }
    table.print(
        "Three limits at once",
        "dashpot, nanoseconds per decision, one thread; all or nothing, on one key. When they deny, \
         the last one does. Wanted: at most 2.5 times one.",
    );
    results::goal("P3", "three limits at once", Wanted::AtMost(2.5), most(ratios), "× one");
}

fn sizes(scale: Scale) -> Vec<(usize, Layout)> {
    let mut sizes = vec![
        (1, Layout::Scattered),
        (1000, Layout::Scattered),
        (1_000_000, Layout::Scattered),
        (1_000_000, Layout::AtHand),
        (10_000_000, Layout::Scattered),
    ];
    let keep = match scale {
        Scale::Quick => 3,
        Scale::Usual | Scale::Full => 5,
    };
    sizes.truncate(keep);
    sizes
}

fn round_count(scale: Scale, keys: usize) -> usize {
    match (scale, keys) {
        (Scale::Quick, 0..=10_000) => 3,
        (Scale::Quick, _) => 1,
        (_, 0..=10_000) => 5,
        (Scale::Usual, 1_000_001..) => 1,
        _ => 3,
    }
}

fn args(keys: usize, mix: &str, layout: Layout) -> [String; 3] {
    [keys.to_string(), mix.to_owned(), layout.name().to_owned()]
}

/// `PEER KEYS MIX LAYOUT`: nanoseconds per check and thread for one thread and for two, million checks
/// a second of the two, and the share of the time that one and two had a core.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let &[peer, keys, mix, layout] = args else { panic!("wrong arguments: {args:?}") };
    let keys = keys.parse().expect("a number of keys");
    with(peer, Speed { keys, deny: mix == "deny", layout: Layout::named(layout) })
}

struct Speed {
    keys: usize,
    deny: bool,
    layout: Layout,
}

impl Job for Speed {
    fn run<P: Peer>(self) -> Vec<f64> {
        let mut workload = Workload::new(self.keys, THREADS, self.layout);
        let rate = if self.deny { Rate::STRICT } else { Rate::ample(self.keys) };
        let peer = P::new(&Setup { rate, keys: self.keys, sweeping: false });
        for &key in &workload.insertion {
            let key = &workload.keys[key as usize];
            peer.check(key);
            // Uses up the burst.
            while self.deny && peer.check(key) {}
        }
        workload.insertion = Vec::new();

        // Each goes on where the last one stopped: keys just asked about are nearer than others.
        let trial = self.time(&peer, &workload, 1, 0, TRIAL);
        let target = if self.keys > 10_000 { 0.2e9 } else { 0.06e9 };
        let checks = (target / trial.each) as usize + 1;
        let one = self.time(&peer, &workload, 1, TRIAL, checks);
        let two = self.time(&peer, &workload, THREADS, TRIAL + checks, checks);
        vec![one.each, two.each, two.total, one.share, two.share]
    }
}

struct Timing {
    /// Nanoseconds per check and thread.
    each: f64,
    /// Million checks a second, all threads together.
    total: f64,
    /// How much of the time the threads had a core.
    share: f64,
}

impl Speed {
    /// Asks so many times on each of so many threads, from this place in their streams on.
    fn time(
        &self,
        peer: &impl Peer,
        workload: &Workload,
        threads: usize,
        from: usize,
        checks: usize,
    ) -> Timing {
        let barrier = Barrier::new(threads);
        let runs: Vec<Run> = thread::scope(|scope| {
            let start = |thread: usize| {
                let (barrier, stream) = (&barrier, &workload.streams[thread]);
                scope.spawn(move || {
                    barrier.wait();
                    go(peer, &workload.keys, stream, from, checks)
                })
            };
            let running: Vec<_> = (0..threads).map(start).collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });

        let all = checks as f64 * threads as f64;
        let allowed: u64 = runs.iter().map(|run| run.allowed).sum();
        assert_eq!(allowed as f64, if self.deny { 0.0 } else { all }, "it answers as it should");
        let time: f64 = runs.iter().map(|run| run.nanos).sum();
        let busy: f64 = runs.iter().map(|run| run.on_cpu).sum();
        let longest = runs.iter().map(|run| run.nanos).fold(0.0, f64::max);
        Timing { each: time / all, total: all / longest * 1e3, share: busy / time }
    }
}

/// What one thread did.
struct Run {
    nanos: f64,
    on_cpu: f64,
    allowed: u64,
}

/// So many checks along a stream, from this place on.
fn go(peer: &impl Peer, keys: &[String], stream: &[u32], from: usize, checks: usize) -> Run {
    let (mut place, mut left, mut allowed) = (from % stream.len(), checks, 0);
    let (start, on_cpu) = (Instant::now(), machine::on_cpu());
    while left > 0 {
        let part = &stream[place..];
        let part = &part[..left.min(part.len())];
        for &key in part {
            allowed += u64::from(peer.check(&keys[key as usize]));
        }
        left -= part.len();
        place = 0;
    }
    Run { nanos: start.elapsed().as_nanos() as f64, on_cpu: machine::on_cpu() - on_cpu, allowed }
}
