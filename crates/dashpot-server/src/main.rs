//! The `dashpot` command.

// What ships does not panic, and cuts no number short.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![forbid(unsafe_code)]

mod answer;
mod check;
mod key;
mod limit;
mod proxy;
mod rules;
mod seconds;
mod serve;
mod server;
mod simulate;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

/// Requests are made of small pieces. With the system's allocator, checks over HTTP and gRPC took longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One rate limiter for every layer.
#[derive(Debug, Parser)]
#[command(name = "dashpot", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Proxy(Box<proxy::Args>),
    Check(check::Args),
    Key(key::Args),
    Rules(rules::Args),
    Simulate(Box<simulate::Args>),
    /// Print completions for a shell: dashpot completions bash > …
    Completions {
        /// bash, elvish, fish, powershell or zsh
        shell: Shell,
    },
}

/// How the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// Allowed, or fine.
    Fine = 0,
    /// Denied.
    Denied = 1,
    /// Wrong usage or a wrong file; also what the argument parser ends with.
    Usage = 2,
    /// The store cannot be reached.
    Store = 3,
    /// The answer could not be written.
    Output = 4,
}

fn main() -> ExitCode {
    let exit = match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Key(args) => key::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Completions { shell } => completions(shell),
    };
    ExitCode::from(exit as u8)
}

fn completions(shell: Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dashpot", &mut script);
    key::written(io::stdout().lock().write_all(&script)).err().unwrap_or(Exit::Fine)
}
