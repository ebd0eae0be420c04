//! Every figure is taken in a process of its own: no heap that another has left behind, a new hash
//! seed and a new layout of memory each time, and a peak that is nobody else's.

use std::env;
use std::process::{Command, Stdio};

use crate::{bytes, excess, fill, flood, layer, overload, redis, results, speed, table};

/// The first argument of a child.
pub(crate) const MARK: &str = "--child";

/// In the child: does the job and prints its figures.
pub(crate) fn answer(args: &[String]) {
    let (job, args) = args.split_first().expect("a child is told its job");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let figures = match job.as_str() {
        "speed" => speed::child(&args),
        "excess" => excess::child(&args),
        "bytes" => bytes::child(&args),
        "fill" => fill::child(&args),
        "flood" => flood::child(&args),
        "layer" => layer::child(&args),
        "overload" => overload::child(&args),
        "leases" => redis::child(&args),
        _ => panic!("there is no job `{job}`"),
    };
    println!("{}", figures.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
}

/// Medians, figure by figure, of what the children of one subject said. What no child told is not a
/// number.
#[derive(Default)]
pub(crate) struct Medians(Vec<Vec<f64>>);

impl Medians {
    pub(crate) fn get(&self, figure: usize) -> f64 {
        let told = self.0.iter().filter_map(|figures| figures.get(figure).copied());
        table::median(told.filter(|figure| !figure.is_nan()).collect())
    }
}

/// Runs the job for each subject in turn, and again for each round, so that what else the machine
/// does meanwhile falls on all of them.
pub(crate) fn rounds(rounds: usize, job: &str, subjects: &[&str], args: &[String]) -> Vec<Medians> {
    let mut all: Vec<_> = subjects.iter().map(|_| Medians(Vec::new())).collect();
    for round in 1..=rounds {
        eprint!("{job} {} ({round}/{rounds})", args.join(" "));
        for (subject, medians) in subjects.iter().zip(&mut all) {
            eprint!(" {subject}");
            medians.0.extend(run(job, subject, args));
        }
        eprintln!();
    }
    for (subject, medians) in subjects.iter().zip(&all) {
        for index in 0..medians.0.first().map_or(0, Vec::len) {
            let figures = medians.0.iter().filter_map(|one| one.get(index).copied()).collect();
            results::samples(format!("{job} {}, {subject}, {index}", args.join(" ")), figures);
        }
    }
    all
}

/// `None` if the child fails, which says why on stderr; the row gets a gap and the others go on.
fn run(job: &str, subject: &str, args: &[String]) -> Option<Vec<f64>> {
    let own = env::current_exe().expect("a program knows itself");
    let output = Command::new(own)
        .args([MARK, job, subject])
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .expect("a program can start itself");
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    text.split_whitespace().map(|figure| figure.parse().ok()).collect()
}
