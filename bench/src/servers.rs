//! Servers that are asked from outside: dashpot's and throttlecrab's, as they are shipped.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dashpot_testkit::process::start;

use crate::results;
use crate::table::median;

/// Of its server, which is installed if it is asked for.
pub(crate) const THROTTLECRAB: &str = "0.4.40";

/// Stopped when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Those it has started go first: who is killed cannot tell them to.
        let _ = Command::new("pkill").args(["-KILL", "-P", &self.0.id().to_string()]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of this machine, as servers are told.
pub(crate) fn at(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// The program, built as it is shipped.
pub(crate) fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = root.join("target");
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "dashpot can be built");
    target.join("release/dashpot")
}

/// `dashpot serve`, once it listens on this port, which the arguments have to name.
pub(crate) fn dashpot(port: u16, arguments: &[&str]) -> Option<Running> {
    let child = start(program().to_str()?, |command| {
        command.args(["serve", "--log-level", "off"]).args(arguments);
        command.current_dir("/").stdout(Stdio::null());
    });
    wait_for(port);
    Some(Running(child))
}

/// throttlecrab's server, on this port for `http` or `grpc`.
pub(crate) fn throttlecrab(port: u16, protocol: &str) -> Option<Running> {
    let installed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/bin/throttlecrab-server");
    if !installed.exists() {
        let status = Command::new("cargo")
            .args([
                "install",
                "--locked",
                "--quiet",
                "throttlecrab-server",
                "--version",
                THROTTLECRAB,
                "--root",
            ])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers"))
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!(
                "throttlecrab-server cannot be installed; it needs protoc (protobuf-compiler)"
            );
            return None;
        }
    }
    let option = format!("--{protocol}");
    let child = start(installed.to_str()?, |command| {
        command.args([&option, &format!("{option}-host"), "127.0.0.1"]);
        command.args([&format!("{option}-port"), &port.to_string()]);
        command.args(["--log-level", "error", "--store", "periodic"]).stdout(Stdio::null());
    });
    wait_for(port);
    Some(Running(child))
}

/// Waits until somebody listens.
pub(crate) fn wait_for(port: u16) {
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "nobody listens on {port}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Measures each subject in turn, and again for each round. Medians, figure by figure; what could not
/// be measured is not a number.
pub(crate) fn medians<S, const FIGURES: usize>(
    of: &str,
    rounds: usize,
    subjects: &[S],
    name: impl Fn(&S) -> String,
    measure: impl Fn(&S) -> Option<[f64; FIGURES]>,
) -> Vec<[f64; FIGURES]> {
    let mut figures: Vec<[Vec<f64>; FIGURES]> =
        subjects.iter().map(|_| [const { Vec::new() }; FIGURES]).collect();
    for _ in 0..rounds {
        for (subject, figures) in subjects.iter().zip(&mut figures) {
            let Some(measured) = measure(subject) else { continue };
            for (all, one) in figures.iter_mut().zip(measured) {
                all.push(one);
            }
        }
    }
    for (subject, figures) in subjects.iter().zip(&figures) {
        for (index, figures) in figures.iter().enumerate() {
            results::samples(format!("{of}, {}, {index}", name(subject)), figures.clone());
        }
    }
    figures.into_iter().map(|figures| figures.map(median)).collect()
}

/// What is to be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Nobody is refused: all statuses are 200.
    Allowed,
    /// All are refused: no status is.
    Denied,
    /// Some are, or the status does not say.
    Either,
}

/// Whether `wrk` was answered so; a peer that answers something else has no figure.
pub(crate) fn is_answered(told: &str, answers: Answers) -> bool {
    let number = |name: &str| {
        let line = told.lines().find(|line| line.contains(name));
        line.and_then(|line| line.split_whitespace().find_map(|word| word.parse::<f64>().ok()))
    };
    let refused = number("Non-2xx or 3xx responses").unwrap_or(0.0);
    let is_right = match (answers, number("requests in")) {
        (_, None) => false,
        (Answers::Allowed, Some(_)) => refused == 0.0,
        // Those that were under way when it counted are on one side or the other.
        (Answers::Denied, Some(all)) => refused >= 0.99 * all,
        (Answers::Either, Some(_)) => true,
    };
    if !is_right || told.contains("Socket errors") {
        eprintln!("not as wanted:\n{told}");
    }
    is_right
}

/// Asks by `wrk` for some seconds: one thread, 50 connections. What it tells.
pub(crate) fn wrk(script: &Path, url: &str, seconds: u32) -> String {
    let output = Command::new("wrk")
        .args(["-t1", "-c50", "--latency", &format!("-d{seconds}s"), "-s"])
        .arg(script)
        .arg(url)
        .output()
        .expect("wrk, which is a package of Debian's");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A figure that it tells.
pub(crate) fn figure(told: &str, name: &str) -> f64 {
    let line = told.lines().find(|line| line.trim_start().starts_with(name));
    let word = line.and_then(|line| line.split_whitespace().nth(1));
    word.and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

/// A time that it tells, in milliseconds: `612.00us`, `1.61ms`, `1.02s`.
pub(crate) fn millis(told: &str, name: &str) -> f64 {
    let line = told.lines().find(|line| line.trim_start().starts_with(name));
    let Some(word) = line.and_then(|line| line.split_whitespace().nth(1)) else { return f64::NAN };
    let (digits, factor) = match word {
        word if word.ends_with("us") => (&word[..word.len() - 2], 1e-3),
        word if word.ends_with("ms") => (&word[..word.len() - 2], 1.0),
        word => (word.trim_end_matches('s'), 1e3),
    };
    digits.parse::<f64>().map_or(f64::NAN, |number| number * factor)
}
