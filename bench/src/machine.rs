//! What it ran on, and how much memory it took.

use std::fs;
use std::process::Command;
use std::thread;

use crate::servers::THROTTLECRAB;

/// What makes two reports comparable, or not.
pub(crate) fn header() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&info, "model name").unwrap_or("unknown");
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = kib(&memory, "MemTotal") / (1 << 30) as f64;
    let peers = [
        "governor",
        "tower_governor",
        "dashmap",
        "throttlecrab",
        "limitador",
        "quanta",
        "foldhash",
    ];
    let versions = peers.map(|name| format!("{name} {}", locked(name))).join(", ");

    let programs = [
        ("nginx", "-v"),
        ("haproxy", "-v"),
        ("redis-server", "--version"),
        ("node", "--version"),
        ("target/gateways/bin/envoy", "--version"),
    ];
    let programs = programs.map(|(name, option)| version(name, option)).join(", ");
    format!(
        "# dashpot and its peers

- cpu: {model}, {cores} cores, {memory:.0} GiB
- dashpot: commit {}
- peers: {versions}, throttlecrab-server {THROTTLECRAB}, express-rate-limit {}
- programs: {programs}
- compiler: {}
- `÷` is a peer's time over dashpot's: above 1, dashpot is faster

",
        commit(),
        express(),
        said("rustc", &["--version"])
    )
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident() -> f64 {
    status("VmRSS")
}

/// The most it ever was.
pub(crate) fn peak() -> f64 {
    status("VmHWM")
}

/// Nanoseconds that this thread has had a core.
pub(crate) fn on_cpu() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(f64::NAN)
}

fn status(name: &str) -> f64 {
    kib(&fs::read_to_string("/proc/self/status").unwrap_or_default(), name)
}

fn kib(text: &str, name: &str) -> f64 {
    let number = |value: &str| value.split_whitespace().next()?.parse::<f64>().ok();
    field(text, name).and_then(number).map_or(f64::NAN, |kib| kib * 1024.0)
}

/// The first `name : value` of a file in /proc.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let pair = |line: &'t str| line.split_once(':');
    let (_, value) = text.lines().filter_map(pair).find(|(key, _)| key.trim() == name)?;
    Some(value.trim())
}

/// The version of a crate that was built in.
fn locked(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entry = format!("name = \"{name}\"\nversion = \"");
    let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("unknown", |(version, _)| version)
}

/// What a program says its version is: the first word with a dot between digits.
fn version(program: &str, option: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    let output = Command::new(program).arg(option).output();
    let told = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let told = String::from_utf8_lossy(&told).into_owned();
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().any(|c| c.is_ascii_digit()) && !word.contains("//")
    };
    let version = told.split(|c: char| c.is_whitespace() || "=/".contains(c)).find(is_version);
    format!("{name} {}", version.unwrap_or("not there"))
}

/// The version that scripts/readers installs.
fn express() -> String {
    let package = include_str!("../../crates/dashpot-http/tests/readers/package.json");
    let version = package.split_once("\"express-rate-limit\": \"").map(|(_, rest)| rest);
    version.and_then(|rest| rest.split('"').next()).unwrap_or("unknown").to_owned()
}

fn commit() -> String {
    let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changed.is_empty() { "" } else { ", with changes" };
    format!("{}{mark}", said("git", &["rev-parse", "--short", "HEAD"]))
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.ok().filter(|output| output.status.success());
    text.map_or_else(
        || "unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
