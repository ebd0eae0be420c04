//! `dashpot rules`: work on rule files without serving anybody.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Subcommand;
use dashpot_http::{HttpDescriptor, Peer};
use dashpot_rules::{LoadError, RuleSet, diff, schema};
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use crate::Exit;

/// Check rule files, explain what they do to a request, compare two of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArgs),
    Explain(ExplainArgs),
    Diff(DiffArgs),
    /// Print the JSON Schema of rule files, for editors
    Schema,
}

/// Say everything that is wrong with a rule file, and what is probably not meant.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exits with 0 if the file can be used, 2 if it cannot.")]
struct CheckArgs {
    /// The rule file, or a directory of them
    #[arg(default_value = "dashpot.toml", env = "DASHPOT_CONFIG")]
    file: PathBuf,
}

/// Say what a request would be held to: which rules match, which facts are believed and why, which
/// keys are cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot rules explain POST /login --peer 203.0.113.7
  dashpot rules explain GET /api/books --peer 10.0.0.1 -H 'x-forwarded-for: 203.0.113.7'
  dashpot rules explain POST /login -H 'content-type: application/json' --body '{\"email\":\"a@b.c\"}'")]
struct ExplainArgs {
    /// The request's method
    method: Method,

    /// The request's path and query, or its URL
    uri: Uri,

    /// The rule file, or a directory of them
    #[arg(long, default_value = "dashpot.toml", env = "DASHPOT_CONFIG")]
    config: PathBuf,

    /// Who connects
    #[arg(long, default_value = "127.0.0.1")]
    peer: IpAddr,

    /// A request header, as in 'x-user-id: alice'; as often as you like
    #[arg(short = 'H', long = "header", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,

    /// The request's body
    #[arg(long)]
    body: Option<String>,
}

/// Say what changes from one rule file to another, and what becomes of the counts.
#[derive(Debug, clap::Args)]
struct DiffArgs {
    /// The rules there are
    before: PathBuf,
    /// The rules there will be
    after: PathBuf,
}

pub(crate) fn run(args: &Args) -> Exit {
    let text = match &args.command {
        Command::Check(args) => check(args),
        Command::Explain(args) => explain(args),
        Command::Diff(args) => compare(args),
        Command::Schema => Ok(format!("{:#}\n", schema())),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => {
            match error {
                // They say themselves what they are.
                LoadError::Rules(errors) => eprintln!("{errors}"),
                other => eprintln!("error: {other}"),
            }
            return Exit::Usage;
        }
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads may have seen enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("error: cannot write the answer: {error}");
            Exit::Output
        }
        _ => Exit::Fine,
    }
}

fn check(args: &CheckArgs) -> Result<String, LoadError> {
    let rules = RuleSet::load(&args.file)?;
    let mut text = String::new();
    for advice in rules.advice() {
        text.push_str(&format!("{advice}\n\n"));
    }
    let policies: usize = rules.rules().iter().map(|rule| rule.policies().count()).sum();
    let (rules, advice) = (rules.rules().len(), rules.advice().len());
    text.push_str(&format!(
        "{}: {}, {}, {}\n",
        args.file.display(),
        several(rules, "rule", "rules"),
        several(policies, "policy", "policies"),
        if advice == 0 {
            "nothing to advise".into()
        } else {
            several(advice, "piece of advice", "pieces of advice")
        },
    ));
    Ok(text)
}

fn several(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn explain(args: &ExplainArgs) -> Result<String, LoadError> {
    let rules = RuleSet::load(&args.config)?;
    let mut request = Request::new(());
    request.method_mut().clone_from(&args.method);
    request.uri_mut().clone_from(&args.uri);
    request.extensions_mut().insert(Peer(SocketAddr::new(args.peer, 0)));
    for (name, value) in &args.headers {
        request.headers_mut().append(name, value.clone());
    }
    let body = args.body.clone().map(Bytes::from);
    let descriptor = HttpDescriptor::new(&rules, &request, body.as_ref());
    Ok(rules.explain(&descriptor).to_string())
}

fn compare(args: &DiffArgs) -> Result<String, LoadError> {
    let lines = diff(&RuleSet::load(&args.before)?, &RuleSet::load(&args.after)?);
    if lines.is_empty() {
        return Ok("nothing changes\n".to_owned());
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Reads `name: value`.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write a header as in 'x-user-id: alice'")?;
    let wrong = |what: &str, error: &dyn std::fmt::Display| format!("`{what}`: {error}");
    let name: HeaderName = name.trim().parse().map_err(|error| wrong(name, &error))?;
    let value = value.trim();
    let value = value.parse().map_err(|error| wrong(value, &error))?;
    Ok((name, value))
}
