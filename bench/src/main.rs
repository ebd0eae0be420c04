//! dashpot and its peers, side by side in one run. See the README next to this.

mod app;
mod burst;
mod bytes;
mod chart;
mod child;
mod excess;
mod fill;
mod flood;
mod grpc;
mod layer;
mod machine;
mod overload;
mod peer;
mod peers;
mod proxy;
mod redis;
mod resp;
mod results;
mod servers;
mod service;
mod speed;
mod table;
mod workload;

use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// How much time to spend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Scale {
    Quick,
    Usual,
    Full,
}

type Section = (&'static str, fn(Scale));

const SECTIONS: [Section; 18] = [
    ("speed", speed::report),
    ("three", speed::report_three),
    ("excess", excess::report),
    ("bytes", bytes::report),
    ("fill", fill::report),
    ("flood", flood::report),
    ("layer", layer::report),
    ("app", app::report),
    ("rules", layer::report_rules),
    ("overload", overload::report),
    ("redis", redis::report),
    ("outage", redis::report_outages),
    ("leases", redis::report_leases),
    ("service", service::report),
    ("grpc", grpc::report),
    ("resp", resp::report),
    ("proxy", proxy::report),
    // Tells what the others answered beside it.
    ("burst", burst::report),
];

const USAGE: &str =
    "usage: bench [--quick | --full] [--write FILE] [speed] [three] [excess] [bytes] [fill]
             [flood] [layer] [app] [rules] [overload] [redis] [outage] [leases] [service] [grpc] [resp] [proxy]
             [burst]

  --write   the whole report into a file, and charts beside it
  --quick   about four minutes: fewer rounds, and what is rough about them shows
  --full    10 million keys for everybody, more rounds: an hour, 5 GB of memory
Without the name of a section, all of them.";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if let Some((child::MARK, rest)) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        child::answer(rest);
        return ExitCode::SUCCESS;
    }
    if let Some((grpc::LIMITADOR, rest)) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        grpc::serve_limitador(rest);
        return ExitCode::SUCCESS;
    }

    if let Some((app::APP, rest)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        app::serve(rest);
        return ExitCode::SUCCESS;
    }

    let mut scale = Scale::Usual;
    let mut file = None;
    let mut chosen = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--write" => file = args.next(),
            "--quick" => scale = Scale::Quick,
            "--full" => scale = Scale::Full,
            name if SECTIONS.iter().any(|(section, _)| *section == name) => chosen.push(name),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }

    print!("{}", machine::header());
    for (name, report) in SECTIONS {
        if chosen.is_empty() || chosen.contains(&name) {
            let start = Instant::now();
            report(scale);
            eprintln!("== {name} took {:.0} s", start.elapsed().as_secs_f64());
        }
    }
    results::print_goals();
    if let Some(file) = file {
        results::write(Path::new(file));
    }
    ExitCode::SUCCESS
}
