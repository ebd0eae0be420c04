//! `dashpot rules`: work on rule files, and on those a server uses.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bytes::Bytes;
use clap::Subcommand;
use clap::builder::BoolishValueParser;
use dashpot_http::{HttpDescriptor, Peer};
use dashpot_rules::{LoadError, RuleSet, diff, schema};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use serde_json::{Value, json};

use crate::Exit;
use crate::key::written;
use crate::serve::api::rules::{ActiveRules, Changes, Explained};
use crate::serve::envoy::{self, Problems};
use crate::server::{InsteadOfFile, OneServer};

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
    /// List the rules that a server uses, and what came of them
    List {
        #[command(flatten)]
        server: OneServer,
        /// Print JSON
        #[arg(long, env = "DASHPOT_JSON", value_parser = BoolishValueParser::new())]
        json: bool,
    },
    /// Have a server read its rule file again, now
    Reload {
        #[command(flatten)]
        server: OneServer,
    },
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

    /// It is envoyproxy/ratelimit's YAML
    #[arg(long)]
    envoy: bool,
}

/// Say what a request would be held to: which rules match, which facts are believed and why, which
/// keys are cut.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot rules explain POST /login --peer 203.0.113.7
  dashpot rules explain GET /api/books --peer 10.0.0.1 -H 'x-forwarded-for: 203.0.113.7'
  dashpot rules explain GET /api/books --server http://127.0.0.1:8080
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

    #[command(flatten)]
    server: InsteadOfFile,
}

/// Say what changes from one rule file to another, and what becomes of the counts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dashpot rules diff old.toml new.toml
  dashpot rules diff new.toml --server http://127.0.0.1:8080")]
struct DiffArgs {
    /// The rules there are, unless a server has them, and the rules there will be
    #[arg(required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    server: InsteadOfFile,
}

/// Why there is nothing to tell.
enum Failure {
    Rules(LoadError),
    Envoy(Problems),
    /// It was told already.
    Told(Exit),
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::Rules(error)
    }
}

impl From<Exit> for Failure {
    fn from(exit: Exit) -> Self {
        Self::Told(exit)
    }
}

pub(crate) fn run(args: &Args) -> Exit {
    let text = match &args.command {
        Command::Check(args) => check(args),
        Command::Explain(args) => explain(args),
        Command::Diff(args) => compare(args),
        Command::List { server, json } => list(server, *json),
        Command::Reload { server } => reload(server),
        Command::Schema => Ok(format!("{:#}\n", schema())),
    };
    let text = match text {
        Ok(text) => text,
        Err(Failure::Told(exit)) => return exit,
        // They say themselves what they are.
        Err(Failure::Rules(LoadError::Rules(errors))) => {
            eprintln!("{errors}");
            return Exit::Usage;
        }
        Err(Failure::Envoy(problems)) => {
            eprintln!("{problems}");
            return Exit::Usage;
        }
        Err(Failure::Rules(other)) => {
            eprintln!("error: {other}");
            return Exit::Usage;
        }
    };
    written(io::stdout().lock().write_all(text.as_bytes())).err().unwrap_or(Exit::Fine)
}

fn check(args: &CheckArgs) -> Result<String, Failure> {
    if args.envoy {
        let (limits, advice) = envoy::check(&args.file).map_err(Failure::Envoy)?;
        let limits = several(limits, "limit", "limits");
        let advice = advice.iter().map(|advice| format!("{advice}\n\n")).collect::<String>();
        return Ok(format!("{advice}{}: {limits}\n", args.file.display()));
    }
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

fn explain(args: &ExplainArgs) -> Result<String, Failure> {
    if let Some(server) = args.server.open()? {
        let told: Explained =
            server.ask("/v1/rules/explain", &json!({ "request": asked(args) }))?;
        return Ok(told.text);
    }
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

/// The request as a server reads it.
fn asked(args: &ExplainArgs) -> Value {
    let mut headers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, value) in &args.headers {
        let line = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.entry(name.as_str()).or_default().push(line);
    }
    let path = args.uri.path_and_query().map_or("/", |path| path.as_str());
    json!({
        "method": args.method.as_str(), "path": path, "ip": args.peer, "headers": headers,
        "body": args.body, "host": args.uri.host(),
    })
}

fn compare(args: &DiffArgs) -> Result<String, Failure> {
    let lines = match (args.server.open()?, &*args.files) {
        (None, [before, after]) => diff(&RuleSet::load(before)?, &RuleSet::load(after)?),
        (Some(server), [after]) => {
            let read = fs::read_to_string(after);
            let text = read.map_err(|error| LoadError::Read { path: after.clone(), error })?;
            let told: Changes = server.send("/v1/rules/diff", text)?;
            told.changes
        }
        (None, _) => return Err(misused("name two rule files, or one and --server")),
        (Some(_), _) => return Err(misused("name one rule file: the server has the other")),
    };
    if lines.is_empty() {
        return Ok("nothing changes\n".to_owned());
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

fn misused(why: &str) -> Failure {
    eprintln!("error: {why}");
    Failure::Told(Exit::Usage)
}

fn list(server: &OneServer, json: bool) -> Result<String, Failure> {
    let told: ActiveRules = server.open()?.get("/v1/rules")?;
    if json {
        return Ok(serde_json::to_string(&told).unwrap_or_default() + "\n");
    }
    let mut text = format!("generation {}\n\n", told.generation);
    text.push_str(" allowed    near   denied   shadow  degraded  rule\n");
    for rule in &told.rules {
        let says = |item: &str| rule.says.get(item).map_or("", String::as_str);
        text.push_str(&format!(
            "{:>8}{:>8}{:>9}{:>9}{:>10}  {}: {}, by {}, {}\n",
            rule.allowed,
            rule.near_limit,
            rule.denied,
            rule.shadow_denied,
            rule.degraded,
            rule.name,
            says("match"),
            says("by"),
            says("limits"),
        ));
    }
    Ok(text)
}

fn reload(server: &OneServer) -> Result<String, Failure> {
    let told: Changes = server.open()?.send("/v1/rules/reload", String::new())?;
    let mut text = format!("generation {}\n", told.generation);
    for line in &told.changes {
        text.push_str(&format!("{line}\n"));
    }
    Ok(text)
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
