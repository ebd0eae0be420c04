//! `dashpot key`: look at one key, and change what is kept of it.

use std::io::{self, ErrorKind, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use clap::builder::BoolishValueParser;
use dashpot::{Decision, KeyOperation, Policy, Timestamp};

use crate::answer::Answer;
use crate::limit::{self, Limit};
use crate::{Exit, table};

/// Look at one key, and change what is kept of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot key peek 100/min --policy api --key alice --store redis://127.0.0.1:6379
  dashpot key reset 100/min --policy api --key alice --store redis://127.0.0.1:6379
  dashpot key block 100/min --policy api --key mallory --for 10min --store redis://127.0.0.1:6379
  dashpot key unblock 100/min --policy api --key mallory --store redis://127.0.0.1:6379

What was counted belongs to the policy's name, algorithm, window and zone: write the limit as it is written
where it is enforced. Exits with 0 if it was done, 2 on wrong usage, 3 if the store cannot be reached.")]
pub(crate) struct Args {
    #[command(subcommand)]
    wish: Wish,
}

#[derive(Debug, Subcommand)]
enum Wish {
    /// How it stands; takes nothing
    Peek(One),
    /// Forget what was counted; a block stays
    Reset(One),
    /// Deny it everything for some time
    Block {
        /// For how long: 30s, 10min, 1day
        #[arg(long = "for", value_parser = limit::time)]
        time: Duration,
        #[command(flatten)]
        one: One,
    },
    /// End a block
    Unblock(One),
}

#[derive(Debug, clap::Args)]
struct One {
    #[command(flatten)]
    limit: Limit,

    /// Print JSON
    #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Exit {
    let (one, operation) = match &args.wish {
        Wish::Peek(one) => (one, KeyOperation::Peek),
        Wish::Reset(one) => (one, KeyOperation::Reset),
        Wish::Block { time, one } => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (one, KeyOperation::Block(Timestamp::EPOCH.after(now).after(*time)))
        }
        Wish::Unblock(one) => (one, KeyOperation::Unblock),
    };
    if one.limit.store.is_empty() {
        eprintln!("error: what is kept in memory ends with this command; say --store redis://…");
        return Exit::Usage;
    }
    let done = one.limit.open().and_then(|(policy, counts)| {
        let decision = counts.manage(&policy, &one.limit.key, operation)?;
        match tell(one, &policy, &decision, &mut io::stdout().lock()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                eprintln!("error: cannot write the answer: {error}");
                Err(Exit::Output)
            }
            _ => Ok(()),
        }
    });
    done.err().unwrap_or(Exit::Fine)
}

fn tell(
    one: &One,
    policy: &Policy,
    decision: &Decision<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    if one.json {
        serde_json::to_writer(&mut *out, &Answer::of(decision, [one.limit.key.as_str()]))?;
        writeln!(out)?;
    } else {
        table::heading(out, policy, &one.limit.key)?;
        table::row(out, 1, decision)?;
    }
    out.flush()
}
