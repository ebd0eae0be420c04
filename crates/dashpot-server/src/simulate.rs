//! `dashpot simulate`: what limits do to traffic, before anybody is limited.

mod contest;
mod log;
mod progress;
mod replay;
mod replayed;
mod told;

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use dashpot::Quota;
use dashpot_simulate::{Csv, Traffic, over_time};

use crate::key::written;
use crate::{Exit, limit};

pub(crate) use contest::{Choice, Contest};
pub(crate) use told::Simulated;

/// See what limits do to traffic: a table, and a picture if you like. Nobody is limited by it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot simulate                                             who knows when windows end, and five algorithms
  dashpot simulate --traffic 'burst 20 every 10s' --limit '10/10s burst 5' --svg burst.svg
  dashpot simulate --traffic 'poisson 12/s' --limit 10/s --algorithm leaky-bucket --queue 20
  dashpot simulate --traffic 'zipf 100/s callers 1000' --limit 1/s --limit 60/min
  dashpot simulate --csv arrivals.csv --limit 100/min --algorithm all
  dashpot simulate --log access.log --config dashpot.toml      what these rules would have denied
  dashpot simulate --log access.log --limit 100/min --by ip

Traffic: steady 12/s, burst 50 every 10s, boundary [100/min], poisson 12/s, zipf 50/s callers 1000 [exponent 1.1].
Several are added together. Logs are common, combined, JSON, or the gateway's own.")]
pub(crate) struct Args {
    /// Traffic that is made up; may be said several times
    #[arg(long, env = "DASHPOT_TRAFFIC", value_delimiter = ',', conflicts_with_all = ["csv", "log"], default_value = "boundary")]
    traffic: Vec<Traffic>,

    /// Arrivals out of a file: seconds,key,cost
    #[arg(long, env = "DASHPOT_CSV", value_name = "FILE", conflicts_with = "log")]
    csv: Option<PathBuf>,

    /// An access log, to be held against rules; `-` is the standard input
    #[arg(long, env = "DASHPOT_LOG", value_name = "FILE")]
    log: Vec<PathBuf>,

    /// The rules that a log is held against; DASHPOT_CONFIG, or ./dashpot.toml if there is one
    // Not by clap: where a service runs, the variable is set, and traffic that is made up has no use for it.
    #[arg(long, requires = "log", conflicts_with = "limit")]
    config: Option<PathBuf>,

    /// What limits count by, with a log: ip if left out
    #[arg(long, env = "DASHPOT_BY", requires = "log", value_delimiter = ',')]
    by: Vec<String>,

    /// The limit; may be said several times. 10/10s if left out
    #[arg(long, env = "DASHPOT_LIMIT", value_parser = limit::quota)]
    limit: Vec<Quota>,

    /// token-bucket, leaky-bucket, fixed-window, sliding-log, sliding-window, concurrency, or all of them
    #[arg(long, env = "DASHPOT_ALGORITHM", value_delimiter = ',')]
    algorithm: Vec<Choice>,

    /// Places in a leaky bucket's queue
    #[arg(long, env = "DASHPOT_QUEUE")]
    queue: Option<u64>,

    /// Places of the queue that proceed at once
    #[arg(long, requires = "queue", env = "DASHPOT_UNDELAYED")]
    undelayed: Option<u64>,

    /// How much time to simulate; four windows if left out
    #[arg(long = "for", env = "DASHPOT_FOR", value_parser = limit::time, value_name = "TIME", conflicts_with_all = ["csv", "log"])]
    length: Option<Duration>,

    /// How long a request takes to serve, which matters to `N concurrent`
    #[arg(long, env = "DASHPOT_TAKES", value_parser = limit::time, value_name = "TIME", default_value = "100ms")]
    takes: Duration,

    /// The same seed makes the same traffic
    #[arg(long, env = "DASHPOT_SEED", default_value_t = 1)]
    seed: u64,

    /// Draw a picture into this file
    #[arg(long, env = "DASHPOT_SVG", value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Print JSON
    #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Exit {
    let done = if args.log.is_empty() { contest(args) } else { replay(args) };
    done.err().unwrap_or(Exit::Fine)
}

/// Traffic against limits.
fn contest(args: &Args) -> Result<(), Exit> {
    let csv = args.csv.as_ref().map(|path| {
        let read =
            File::open(path).map_err(Into::into).and_then(|file| Csv::read(BufReader::new(file)));
        read.map_err(|error| usage(&format!("{}: {error}", path.display())))
    });
    let csv = csv.transpose()?;
    let contest = Contest {
        traffic: args.traffic.clone(),
        limits: if args.limit.is_empty() {
            vec![Quota::new(10, TEN_SECONDS)]
        } else {
            args.limit.clone()
        },
        algorithms: match (&*args.algorithm, &*args.limit) {
            ([], []) => vec![Choice::All],
            (some, _) => some.to_vec(),
        },
        queue: args.queue,
        undelayed: args.undelayed,
        length: csv.as_ref().map(Csv::length).or(args.length),
        takes: args.takes,
        seed: args.seed,
    };
    let ready = contest.ready(csv).map_err(|wrong| usage(&wrong))?;
    let bar = progress::Bar::of(ready.steps());
    let simulated = ready.run(|part| bar.at(part));
    bar.end();
    draw(args, || simulated.picture())?;
    tell(args, &simulated, || simulated.table())
}

const TEN_SECONDS: dashpot::Window = match dashpot::Window::new(Duration::from_secs(10)) {
    Ok(window) => window,
    Err(_) => dashpot::Window::SECOND,
};

/// A log against rules.
fn replay(args: &Args) -> Result<(), Exit> {
    let rules = replay::rules(args)?;
    let replayed = replay::replay(&rules, &args.log, args.takes).map_err(|error| usage(&error))?;
    draw(args, || {
        over_time("Requests in the log, by what the rules would have done", &replayed.series)
    })?;
    tell(args, &replayed, || replayed.table())
}

fn draw(args: &Args, picture: impl FnOnce() -> String) -> Result<(), Exit> {
    let Some(path) = &args.svg else { return Ok(()) };
    fs::write(path, picture()).map_err(|error| {
        eprintln!("error: cannot write {}: {error}", path.display());
        Exit::Output
    })
}

fn tell(
    args: &Args,
    answer: &impl serde::Serialize,
    table: impl FnOnce() -> String,
) -> Result<(), Exit> {
    let text = match args.json {
        true => serde_json::to_string(answer).unwrap_or_default() + "\n",
        false => table(),
    };
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// Says what is wrong.
fn usage(wrong: &str) -> Exit {
    eprintln!("error: {wrong}");
    Exit::Usage
}
