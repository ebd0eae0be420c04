//! `dashpot check`: ask a limit, and see what it says.

use std::io::{self, Write};

use clap::builder::BoolishValueParser;
use dashpot::{Outcome, Policy};

use crate::answer::OutcomeWord;
use crate::key::written;
use crate::limit::{Counts, Limit};
use crate::{Exit, table};

/// Ask a limit, and see what it says.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot check 5/10s --key alice --times 8
  dashpot check '10/s burst 20' --key alice --cost 5
  dashpot check 10/s --algorithm leaky-bucket --queue 20 --key alice --times 4
  dashpot check 1000/month --algorithm fixed-window --zone Europe/Berlin --key alice
  dashpot check 5/min --key alice --store redis://127.0.0.1:6379
  dashpot check 5/min --key alice --server http://127.0.0.1:8080

Exits with 0 if everything was allowed, 1 if something was denied, 2 on wrong usage, 3 if the store or the
server cannot be reached.")]
pub(crate) struct Args {
    #[command(flatten)]
    limit: Limit,

    /// How many units each check takes; 0 only looks
    #[arg(long, default_value_t = 1, env = "DASHPOT_COST")]
    cost: u64,

    /// How many checks to make, one right after the other
    #[arg(long, default_value_t = 1, env = "DASHPOT_TIMES")]
    times: u64,

    /// Print JSON, one line for each check
    #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Exit {
    let (policy, counts) = match args.limit.open() {
        Ok(opened) => opened,
        Err(exit) => return exit,
    };
    let mut outcome = Outcome::Allow;
    match written(ask(args, &policy, &counts, &mut outcome, &mut io::stdout().lock())) {
        Ok(Some(exit)) | Err(exit) => exit,
        Ok(None) if outcome == Outcome::Deny => Exit::Denied,
        Ok(None) => Exit::Fine,
    }
}

/// Makes the checks and prints the answers as they come; one denial makes the outcome a denial. Ends early
/// if the store cannot answer.
fn ask(
    args: &Args,
    policy: &Policy,
    counts: &Counts,
    outcome: &mut Outcome,
    out: &mut impl Write,
) -> io::Result<Option<Exit>> {
    if !args.json {
        table::heading(out, policy, &args.limit.key)?;
    }
    for number in 1..=args.times {
        let answer = match counts.decide(&args.limit, policy, args.cost) {
            Ok(answer) => answer,
            Err(exit) => return Ok(Some(exit)),
        };
        if answer.outcome == OutcomeWord::Deny {
            *outcome = Outcome::Deny;
        }
        if args.json {
            serde_json::to_writer(&mut *out, &answer)?;
            writeln!(out)?;
        } else {
            table::row(out, number, policy, &answer)?;
        }
    }
    out.flush()?;
    Ok(None)
}
