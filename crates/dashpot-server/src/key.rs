//! `dashpot key`: look at one key, and change what is kept of it.

use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use clap::Subcommand;
use clap::builder::BoolishValueParser;
use dashpot::Policy;

use crate::answer::Answer;
use crate::limit::{self, Limit, Wish};
use crate::serve::api::keys::TopKeys;
use crate::server::OneServer;
use crate::{Exit, table};

/// Look at one key, and change what is kept of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot key peek 100/min --policy api --key alice --store redis://127.0.0.1:6379
  dashpot key reset 100/min --policy api --key alice --store redis://127.0.0.1:6379
  dashpot key block 100/min --key mallory --for 10min --server http://127.0.0.1:8080
  dashpot key unblock 100/min --key mallory --server http://127.0.0.1:8080
  dashpot key top

What was counted belongs to the policy's name, algorithm, window and zone: write the limit as it is written
where it is enforced. Exits with 0 if it was done, 2 on wrong usage, 3 if the store or the server cannot be
reached.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// Who was denied most, as a server tells
    Top {
        /// How many of them
        #[arg(short, default_value_t = 20)]
        n: u16,
        #[command(flatten)]
        server: OneServer,
        /// Print JSON
        #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
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
    let done = match &args.command {
        Command::Peek(one) => manage(one, Wish::Peek),
        Command::Reset(one) => manage(one, Wish::Reset),
        Command::Block { time, one } => manage(one, Wish::Block(*time)),
        Command::Unblock(one) => manage(one, Wish::Unblock),
        Command::Top { n, server, json } => top(server, *n, *json),
    };
    done.err().unwrap_or(Exit::Fine)
}

fn manage(one: &One, wish: Wish) -> Result<(), Exit> {
    if one.limit.store.is_empty() && !one.limit.server.is_named() {
        eprintln!(
            "error: what is kept in memory ends with this command; say --server http://… or --store redis://…"
        );
        return Err(Exit::Usage);
    }
    let (policy, counts) = one.limit.open()?;
    let answer = counts.manage(&one.limit, &policy, &wish)?;
    written(tell(one, &policy, &answer, &mut io::stdout().lock()))
}

fn tell(one: &One, policy: &Policy, answer: &Answer<'_>, out: &mut impl Write) -> io::Result<()> {
    if one.json {
        serde_json::to_writer(&mut *out, answer)?;
        writeln!(out)?;
    } else {
        table::heading(out, policy, &one.limit.key)?;
        table::row(out, 1, policy, answer)?;
    }
    out.flush()
}

fn top(server: &OneServer, most: u16, json: bool) -> Result<(), Exit> {
    let told: TopKeys = server.open()?.get(&format!("/v1/keys/top?n={most}"))?;
    if json {
        let text = serde_json::to_string(&told).unwrap_or_default();
        return written(writeln!(io::stdout().lock(), "{text}"));
    }
    let mut text = "  denied  rule                  key\n".to_owned();
    for one in &told.keys {
        let values: Vec<_> = one.key.iter().map(|value| value.escape_debug().to_string()).collect();
        let rule = one.rule.as_deref().unwrap_or("-");
        text.push_str(&format!("{:>8}  {rule:<20}  {}\n", one.denied, values.join(" ")));
    }
    written(io::stdout().lock().write_all(text.as_bytes()))
}

/// How the command ends, if the answer could not be written.
pub(crate) fn written<T: Default>(result: io::Result<T>) -> Result<T, Exit> {
    result.or_else(|error| match error.kind() {
        // Whoever reads may have seen enough.
        ErrorKind::BrokenPipe => Ok(T::default()),
        _ => {
            eprintln!("error: cannot write the answer: {error}");
            Err(Exit::Output)
        }
    })
}
