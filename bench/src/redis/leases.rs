//! Four processes on one Redis, by how closely they keep to a limit: how much they decide, how long it takes, how often
//! they ask, and how much they grant of what they may.

mod child;

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use dashpot::Algorithm;
use dashpot_testkit::RedisServer;

use crate::Scale;
use crate::child::MARK;
use crate::results::{self, Wanted};
use crate::table::{self, Table, count, median, number};

pub(crate) use child::child;

/// What a child is told to do.
pub(crate) const JOB: &str = "leases";

const PROCESSES: usize = 4;

/// How many of the hottest keys are counted.
const WATCHED: usize = 16;

/// How many windows of a second are told apart.
const WINDOWS: usize = 8;

const MODES: [&str; 4] = ["memory", "exact", "leased", "approximate"];

/// What is asked about.
struct Scene {
    name: &'static str,
    algorithm: Algorithm,
    keys: usize,
    rate: u64,
}

const SCENES: [Scene; 3] = [
    Scene {
        name: "one key, limit too high to reach",
        algorithm: Algorithm::TokenBucket,
        keys: 1,
        rate: 100_000_000,
    },
    Scene { name: "one key, 100 000/s", algorithm: Algorithm::TokenBucket, keys: 1, rate: 100_000 },
    Scene {
        name: "a million keys, Zipf 1.1, 1000/s each",
        algorithm: Algorithm::TokenBucket,
        keys: 1_000_000,
        rate: 1000,
    },
];

/// What all processes of a run did together.
struct Run {
    checks: f64,
    seconds: f64,
    /// Of all processes, without the server.
    on_cpu: f64,
    p50: f64,
    p99: f64,
    calls: f64,
    /// Of the watched keys, the most that was granted of what may be.
    granted: f64,
    /// Of the hottest key: what the process granted that granted least, and most.
    shares: (f64, f64),
}

pub(crate) fn report(scale: Scale) {
    let (rounds, seconds) = match scale {
        Scale::Quick => (1, 2),
        Scale::Usual => (3, 1),
        Scale::Full => (5, 3),
    };
    for scene in &SCENES {
        let head = [
            "",
            "checks/s",
            "ns of a processor",
            "× memory's",
            "p50, µs",
            "p99, µs",
            "calls to Redis ÷ checks",
            "granted ÷ allowed",
            "least ÷ most of a process",
        ];
        let mut table = Table::new(head);
        let mut all: Vec<Vec<Run>> = MODES.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            for (mode, runs) in MODES.iter().zip(&mut all) {
                eprintln!("leases: {}, {mode}", scene.name);
                runs.push(run(mode, scene, seconds));
            }
        }
        let of = |runs: &[Run], figure: fn(&Run) -> f64| median(runs.iter().map(figure).collect());
        let cost = |runs: &[Run]| of(runs, |run| run.on_cpu / run.checks);
        for (mode, runs) in MODES.iter().zip(&all) {
            let each = runs.iter().map(|run| run.on_cpu / run.checks).collect();
            let of_each = |what: &str, figures| {
                results::samples(format!("leases, {}, {mode}, {what}", scene.name), figures);
            };
            of_each("ns", each);
            of_each("calls ÷ checks", runs.iter().map(|run| run.calls / run.checks).collect());
            of_each("granted ÷ allowed", runs.iter().map(|run| run.granted).collect());
            let speed = of(runs, |run| run.checks / run.seconds);
            let most = runs.iter().map(|run| run.granted).fold(0.0, f64::max);
            // Each has the whole limit in memory, and one that is never reached is not shared.
            let is_shared = *mode != "memory" && scene.rate < 10_000_000;
            let when = |shown: bool, figure: String| if shown { figure } else { "–".to_owned() };
            table.row([
                (*mode).to_owned(),
                count(speed),
                number(cost(runs)),
                number(cost(runs) / cost(&all[0])),
                number(of(runs, |run| run.p50)),
                number(of(runs, |run| run.p99)),
                when(*mode != "memory", format!("{:.6}", of(runs, |run| run.calls / run.checks))),
                when(is_shared, format!("{most:.3}")),
                when(is_shared, number(of(runs, |run| run.shares.0 / run.shares.1))),
            ]);
        }
        let leased = &all[2];
        if scene.keys == 1 && scene.rate > 10_000_000 {
            let cost = cost(leased) / cost(&all[0]);
            results::goal("P11", "a leased hot key", Wanted::AtMost(2.0), cost, "× memory's time");
            let calls = of(leased, |run| run.calls / run.checks) * 1000.0;
            let work = "calls to Redis, leased hot key";
            results::goal("P11", work, Wanted::AtMost(1.0), calls, "in 1000 checks");
        } else {
            let granted = leased.iter().map(|run| run.granted).fold(0.0, f64::max);
            let work = format!("leased, {}", scene.name);
            results::goal("P11", work, Wanted::AtMost(1.0), granted, "granted ÷ allowed");
        }
        table.print(
            &format!("Four processes, {}", scene.name),
            "Checks of four processes together, which share the machine's cores with the server; medians. In memory each \
             is on its own: what a check costs without anybody else. The processor's time is that of those who ask, \
             without the server's. `granted ÷ allowed` is the worst of all rounds, \
             of the hottest sixteen keys; above 1 is too much. Wanted of leases: at most twice the time of a check in \
             memory, at most a call for a thousand checks, and never above 1.",
        );
    }
    report_accuracy(rounds, seconds);
}

/// What is granted of what may be, by algorithm.
fn report_accuracy(rounds: usize, seconds: u64) {
    let modes = &MODES[1..];
    let algorithms = [
        Algorithm::TokenBucket,
        Algorithm::LeakyBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingWindow,
    ];
    let mut table = Table::new([""].iter().chain(modes).copied());
    for algorithm in algorithms {
        let scene = Scene { name: "accuracy", algorithm, keys: 1, rate: 20_000 };
        let most = |mode: &&str| {
            eprintln!("leases: {algorithm}, {mode}");
            let granted = (0..rounds.min(2)).map(|_| run(mode, &scene, seconds).granted);
            let granted: Vec<f64> = granted.collect();
            let most = table::most(granted.iter().copied());
            results::samples(format!("leases, {algorithm}, {mode}, granted ÷ allowed"), granted);
            if *mode != "approximate" {
                let work = format!("{mode}, {algorithm}, 20 000/s");
                results::goal("P11", work, Wanted::AtMost(1.0), most, "granted ÷ allowed");
            }
            format!("{most:.4}")
        };
        table.row(std::iter::once(algorithm.to_string()).chain(modes.iter().map(most)));
    }
    table.print(
        "Granted ÷ allowed, four processes, one key, 20 000/s",
        "Everybody asks for as much as can be; the worst of all rounds. Of buckets, all that was granted, of what the burst \
         and the rate allow; of windows, what was granted in the fullest, by Redis's clock. Above 1 is too much. \
         Approximate may grant 2000 for each process besides, which is 0.1 of a window each.",
    );
}

fn run(mode: &str, scene: &Scene, seconds: u64) -> Run {
    let server = RedisServer::start();
    let begin = SystemTime::now() + Duration::from_millis(if scene.keys > 1 { 2500 } else { 800 });
    let begin = begin.duration_since(SystemTime::UNIX_EPOCH).expect("it is later than 1970");
    let own = env::current_exe().expect("a program knows itself");
    let start = |process: usize| {
        Command::new(&own)
            .args([MARK, JOB, mode, &server.url(), scene.algorithm.name()])
            .args(
                [scene.keys, usize::try_from(scene.rate).expect("a rate"), process]
                    .map(|n| n.to_string()),
            )
            .args([begin.as_millis().to_string(), (seconds * 1000).to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program can start itself")
    };
    let processes: Vec<Child> = (0..PROCESSES).map(start).collect();
    let told = |process: Child| -> Vec<f64> {
        let output = process.wait_with_output().expect("a process ends");
        let text = String::from_utf8(output.stdout).expect("figures");
        text.split_whitespace().filter_map(|figure| figure.parse().ok()).collect()
    };
    let told: Vec<Vec<f64>> = processes.into_iter().map(told).collect();
    let sum = |figure: usize| told.iter().map(|figures| figures[figure]).sum::<f64>();
    let last = told.iter().map(|figures| figures[1]).fold(0.0, f64::max);
    let rate = scene.rate as f64;
    let is_window = matches!(scene.algorithm, Algorithm::FixedWindow | Algorithm::SlidingWindow);
    let (counts, allowed) = if is_window {
        (5 + WATCHED..5 + WATCHED + WINDOWS, rate)
    } else {
        (5..5 + WATCHED, (1.0 + last) * rate)
    };
    let granted = counts.map(|count| sum(count) / allowed);
    let hottest = told.iter().map(|figures| figures[5]);
    Run {
        checks: sum(0),
        seconds: last,
        on_cpu: sum(2),
        p50: median(told.iter().map(|figures| figures[3]).collect()),
        p99: told.iter().map(|figures| figures[4]).fold(0.0, f64::max),
        calls: calls(&server),
        granted: granted.fold(0.0, f64::max),
        shares: (hottest.clone().fold(f64::INFINITY, f64::min), hottest.fold(0.0, f64::max)),
    }
}

/// How many scripts were called.
fn calls(server: &RedisServer) -> f64 {
    let text = server.command(&["INFO", "commandstats"]).text();
    let of = |name: &str| {
        let after = text.split_once(&format!("cmdstat_{name}:calls="))?.1;
        after.split(',').next()?.parse::<f64>().ok()
    };
    of("evalsha").unwrap_or(0.0) + of("eval").unwrap_or(0.0)
}
