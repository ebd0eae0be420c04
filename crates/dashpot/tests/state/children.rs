//! Processes that are killed while they write, or find the disk full. This binary is run again as
//! the child, which does nothing but its part of one test.

use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use dashpot::{Algorithm, Check, Limiter, MemoryStore, Policy, StateError, StateKeeper};

use super::scratch::Scratch;

const PART: &str = "DASHPOT_TEST_PART";
const PERIOD: Duration = Duration::from_millis(20);
/// So many that it takes a while to write them.
const KEYS: u64 = 20_000;

/// A count that only grows while this runs.
fn policy() -> Policy {
    let yearly = Policy::builder("p", "1000000000/year".parse().unwrap());
    yearly.algorithm(Algorithm::FixedWindow).build().unwrap()
}

fn child(test: &str, scratch: &Scratch) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("children::{test}"), "--nocapture"]);
    command.env(PART, scratch.file());
    command
}

/// Takes a round of units from all keys, tells how many rounds that were, and goes on until it is
/// killed.
fn count_until_killed(path: &str) -> ! {
    let store = Arc::new(MemoryStore::builder().build_from(path).expect("what was left is whole"));
    let policy = policy();
    let _keeper = StateKeeper::start(store.clone(), path, PERIOD, |error| panic!("{error}"));
    let mut rounds = 0_u64;
    loop {
        for key in 0..KEYS {
            assert!(store.decide_now(&[Check::new(&policy, &key.to_le_bytes())]).is_allowed());
        }
        rounds += 1;
        println!("round {rounds}");
        stdout().flush().unwrap();
    }
}

/// Killed at random moments, it loses what it counted since the last time it saved, and no more;
/// and what it left can always be read.
#[test]
fn killed() {
    if let Ok(path) = env::var(PART) {
        count_until_killed(&path);
    }
    let scratch = Scratch::new();
    let mut before = 0;
    let mut proven = 0;
    for run in 0..6_u64 {
        let mut child = child("killed", &scratch).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reader = thread::spawn(move || {
            let told =
                |line: String| Some((Instant::now(), line.strip_prefix("round ")?.parse().ok()?));
            lines.map_while(Result::ok).filter_map(told).collect::<Vec<(Instant, u64)>>()
        });
        // Long enough to start, and then at any moment.
        thread::sleep(Duration::from_millis(700 + run * 37 % 101));
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        let rounds = reader.join().unwrap();

        let store = MemoryStore::builder().build_from(scratch.file()).unwrap();
        let policy = policy();
        // It takes time to write, too, and more on a busy machine.
        let lost_at_most = PERIOD + Duration::from_millis(300);
        let counted = |told: &&(Instant, u64)| killed.duration_since(told.0) > lost_at_most;
        let sure = rounds.iter().filter(counted).map(|told| told.1).max().unwrap_or(0);
        proven += sure;
        let most = rounds.last().map_or(0, |told| told.1) + 2;
        let mut least = u64::MAX;
        for key in 0..KEYS {
            let status = store.decide_now(&[Check::new(&policy, &key.to_le_bytes()).cost(0)]);
            let status = status.statuses()[0];
            let used = status.limit() - status.remaining();
            assert!(used >= before + sure, "run {run}: {used} of {before} + {sure} rounds");
            assert!(used <= before + most, "run {run}: {used} of {before} + {most} rounds");
            least = least.min(used);
        }
        before = least;
        // The next one goes on from a file in which all keys stand alike.
        let level = MemoryStore::builder().build_from(scratch.file()).unwrap();
        for key in 0..KEYS {
            let (key, policy) = (key.to_le_bytes(), &policy);
            let _ = level.manage_now(policy, (&key).into(), dashpot::KeyOperation::Reset);
            if before > 0 {
                let _ = level.decide_now(&[Check::new(policy, &key).cost(before)]);
            }
        }
        level.save(scratch.file()).unwrap();
    }
    assert!(proven > 0, "some rounds were old enough to be in the file for sure");
}

/// A full disk is told, what was there before stays whole, and nothing is left lying about. The
/// kernel's limit on the size of files stands for the disk: the write that goes beyond it fails.
#[test]
fn disk_full() {
    if let Ok(path) = env::var(PART) {
        let store = MemoryStore::builder().build_from(&path).unwrap();
        let limiter = Limiter::on(policy(), store);
        for key in 0..KEYS {
            assert!(limiter.check(&key.to_le_bytes()).is_allowed());
        }
        let error = limiter.store().save(&path).expect_err("there is no room for so much");
        assert!(matches!(error, StateError::Write { .. }), "{error}");
        println!("told");
        return;
    }
    let scratch = Scratch::new();
    let limiter = Limiter::on(policy(), MemoryStore::new());
    assert!(limiter.check_n("k", 7).is_allowed());
    limiter.store().save(scratch.file()).unwrap();
    let before = fs::read(scratch.file()).unwrap();

    let child = child("disk_full", &scratch);
    let mut shell = Command::new("sh");
    // Without the signal that comes with it, which would end the child before it can tell.
    shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"]);
    shell.arg(child.get_program()).args(child.get_args()).env(PART, scratch.file());
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("told"), "{said}");
    assert_eq!(fs::read(scratch.file()).unwrap(), before);
    assert_eq!(scratch.names(), ["dashpot.state"]);
}
