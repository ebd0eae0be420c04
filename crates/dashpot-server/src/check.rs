//! `dashpot check`: ask a limit, and see what it says.

use std::io::{self, ErrorKind, Write};

use clap::builder::BoolishValueParser;
use dashpot::{Algorithm, Limiter, MemoryStore, Outcome, Policy, PolicyError, Quota, Zone};

use crate::answer::Answer;
use crate::{Exit, table};

/// Ask a limit, and see what it says.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot check 5/10s --key alice --times 8
  dashpot check '10/s burst 20' --key alice --cost 5
  dashpot check 10/s --algorithm leaky-bucket --queue 20 --key alice --times 4
  dashpot check 1000/month --algorithm fixed-window --zone Europe/Berlin --key alice

Exits with 0 if everything was allowed, 1 if something was denied, 2 on wrong usage.")]
pub(crate) struct Args {
    /// The limit: COUNT/WINDOW [burst N], `N concurrent` or `unlimited`
    #[arg(value_parser = quota, env = "DASHPOT_LIMIT")]
    limit: Quota,

    /// Who asks
    #[arg(long, env = "DASHPOT_KEY")]
    key: String,

    /// How many units each check takes; 0 only looks
    #[arg(long, default_value_t = 1, env = "DASHPOT_COST")]
    cost: u64,

    /// How many checks to make, one right after the other
    #[arg(long, default_value_t = 1, env = "DASHPOT_TIMES")]
    times: u64,

    /// token-bucket, leaky-bucket, fixed-window, sliding-log, sliding-window or concurrency
    #[arg(long, env = "DASHPOT_ALGORITHM")]
    algorithm: Option<Algorithm>,

    /// Places in a leaky bucket's queue
    #[arg(long, env = "DASHPOT_QUEUE")]
    queue: Option<u64>,

    /// Places of the queue that proceed at once
    #[arg(long, requires = "queue", env = "DASHPOT_UNDELAYED")]
    undelayed: Option<u64>,

    /// Time zone of a fixed window's days, weeks and months
    #[arg(long, default_value_t = Zone::UTC, env = "DASHPOT_ZONE")]
    zone: Zone,

    /// Print JSON, one line for each check
    #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
    json: bool,
}

impl Args {
    fn policy(&self) -> Result<Policy, PolicyError> {
        let mut policy = Policy::builder("check", self.limit).zone(self.zone.clone());
        if let Some(algorithm) = self.algorithm {
            policy = policy.algorithm(algorithm);
        }
        if let Some(places) = self.queue {
            policy = policy.queue(places);
        }
        if let Some(places) = self.undelayed {
            policy = policy.undelayed(places);
        }
        policy.build()
    }
}

pub(crate) fn run(args: &Args) -> Exit {
    let policy = match args.policy() {
        Ok(policy) => policy,
        Err(wrong) => {
            eprintln!("error: {wrong}");
            return Exit::Usage;
        }
    };
    let limiter = Limiter::on(policy, MemoryStore::new());
    let mut outcome = Outcome::Allow;
    match ask(args, &limiter, &mut outcome, &mut io::stdout().lock()) {
        // Whoever reads may have seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: cannot write the answer: {error}");
            Exit::Output
        }
        _ if outcome == Outcome::Deny => Exit::Denied,
        _ => Exit::Fine,
    }
}

/// Makes the checks and prints the answers as they come; one denial makes the outcome a denial.
fn ask(
    args: &Args,
    limiter: &Limiter,
    outcome: &mut Outcome,
    out: &mut impl Write,
) -> io::Result<()> {
    if !args.json {
        table::heading(out, limiter.policy(), &args.key)?;
    }
    for number in 1..=args.times {
        let decision = limiter.check_n(&args.key, args.cost);
        if !decision.is_allowed() {
            *outcome = Outcome::Deny;
        }
        if args.json {
            serde_json::to_writer(&mut *out, &Answer::new(&decision, &args.key))?;
            writeln!(out)?;
        } else {
            table::row(out, number, &decision)?;
        }
    }
    out.flush()
}

/// Reads a limit; if it is wrong, shows where.
fn quota(text: &str) -> Result<Quota, String> {
    text.parse().map_err(|wrong: dashpot::ParseQuotaError| {
        let excerpt = wrong.excerpt().replace('\n', "\n  ");
        format!("{wrong}\n\n  {excerpt}")
    })
}
