//! The table (and [the gate](crate::Gate)) under model checkers: the code as it is shipped, on atomics and locks whose every step
//! the checker decides. `scripts/test` runs these with both.
//!
//! - [loom](https://docs.rs/loom) goes through all interleavings of a small scenario in which threads
//!   are interrupted so many times, and for each load through all values the memory model allows.
//! - [shuttle](https://docs.rs/shuttle) goes through thousands of random ones of a larger scenario,
//!   with memory as simple as it gets.
//!
//! Both notice when threads wait for each other for ever. Time stands still in most scenarios, so
//! that what is admitted can be told to the unit.

mod group;
mod growth;
mod insertion;
mod one_key;
mod overflow;
mod reuse;
mod scene;
mod several;
mod sweep;
mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

pub(super) use scene::{Scene, any_keys, by, fixed, mark, per_hour, used};

#[cfg(dashpot_loom)]
use loom as checker;
#[cfg(dashpot_shuttle)]
use shuttle as checker;

/// How far a scenario is explored.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// By loom: how many times threads are interrupted where they would not wait; all if `None`.
    #[cfg_attr(dashpot_shuttle, expect(dead_code))]
    pub(crate) interruptions: Option<usize>,
    /// By shuttle: how many schedules.
    #[cfg_attr(dashpot_loom, expect(dead_code))]
    pub(crate) schedules: usize,
}

/// How long loom may take for a scenario. Few take as long: what a load may return multiplies.
const LONGEST: Duration = Duration::from_secs(3);

/// Runs a scenario again and again, each time otherwise.
pub(crate) fn explore(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    let (runs, start) = (Arc::new(AtomicU64::new(0)), Instant::now());
    let counted = {
        let runs = runs.clone();
        move || {
            runs.fetch_add(1, Ordering::Relaxed);
            scenario();
        }
    };
    run(effort, counted);
    let is_cut = cfg!(dashpot_loom) && start.elapsed() > LONGEST;
    // Shown by `--nocapture`.
    println!("{runs:?} runs in {:?}{}", start.elapsed(), if is_cut { ", of more" } else { "" });
}

#[cfg(dashpot_loom)]
fn run(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    // Both can be set from outside, to explore for longer: LOOM_MAX_PREEMPTIONS, LOOM_MAX_DURATION.
    builder.preemption_bound = builder.preemption_bound.or(effort.interruptions);
    builder.max_duration = builder.max_duration.or(Some(LONGEST));
    builder.checkpoint_interval = 100;
    // What goes before and after `together` happens one way only.
    builder.expect_explicit_explore = true;
    builder.check(scenario);
}

#[cfg(dashpot_shuttle)]
fn run(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};

    let mut config = shuttle::Config::new();
    config.silence_warnings = true;
    config.stack_size = 0x2_0000;
    config.max_steps = shuttle::MaxSteps::FailAfter(100_000);
    // Interrupted a few times, and interrupted at every turn.
    let few = PctScheduler::new_from_seed(1, 3, effort.schedules);
    let many = RandomScheduler::new_from_seed(1, effort.schedules / 4);
    let scenario = Arc::new(scenario);
    let again = scenario.clone();
    shuttle::Runner::new(few, config.clone()).run(move || scenario());
    shuttle::Runner::new(many, config).run(move || again());
}

/// Runs these at the same time, and returns what they return.
pub(crate) fn together<T: Send + 'static>(works: impl IntoIterator<Item = Work<T>>) -> Vec<T> {
    #[cfg(dashpot_loom)]
    loom::explore();
    let threads: Vec<_> = works
        .into_iter()
        .map(|work| {
            let (result, results) = mpsc::channel();
            let run = move || result.send(work()).unwrap();
            (checker::thread::spawn(run), results)
        })
        .collect();
    let join = |(thread, results): (checker::thread::JoinHandle<()>, mpsc::Receiver<T>)| {
        thread.join().unwrap();
        results.recv().unwrap()
    };
    let results = threads.into_iter().map(join).collect();
    #[cfg(dashpot_loom)]
    loom::stop_exploring();
    results
}

/// What a thread does.
pub(crate) type Work<T> = Box<dyn FnOnce() -> T + Send>;

pub(crate) fn boxed<T>(work: impl FnOnce() -> T + Send + 'static) -> Work<T> {
    Box::new(work)
}

/// What a thread does, with clones of these.
macro_rules! work {
    ([$($name:ident),*] $body:expr) => {{
        $(let $name = $name.clone();)*
        $crate::memory::models::boxed(move || $body)
    }};
}
pub(crate) use work;
