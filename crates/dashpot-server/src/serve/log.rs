//! What is logged, and how.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// A JSON object each.
    Json,
}

/// Logs to the standard error from now on.
pub(crate) fn start(format: Format, level: LevelFilter) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        // Nobody may be there to read it; that is no reason to stop.
        .log_internal_errors(false)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // It fails only if somebody logs already.
    let _ = match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
}
