//! What is logged, and how.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

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
    // Libraries tell of every frame; who wants to see that asks for everything.
    let ours = FilterFn::new(move |line| {
        let most = if line.target().starts_with("dashpot") || level == LevelFilter::TRACE {
            level
        } else {
            level.min(LevelFilter::INFO)
        };
        *line.level() <= most
    })
    .with_max_level_hint(level);
    let lines = fmt::layer()
        .with_target(false)
        // Nobody may be there to read it; that is no reason to stop.
        .log_internal_errors(false)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // It fails only if somebody logs already.
    let _ = match format {
        Format::Text => registry().with(lines.with_filter(ours)).try_init(),
        Format::Json => {
            registry().with(lines.json().flatten_event(true).with_filter(ours)).try_init()
        }
    };
}
