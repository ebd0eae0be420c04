//! A soak: two services and a gateway on a Redis cluster, a service in memory, and callers, while servers are
//! killed, hang and are slow, networks break, the disk is full and rules are broken. What callers see is held to
//! what they are promised: `scripts/chaos`.

#![forbid(unsafe_code)]

mod backend;
mod callers;
mod deadline;
mod faults;
mod fleet;
mod grpc;
mod instance;
mod judge;
mod keys;
mod memory;
mod pace;
mod permits;
mod recovery;
mod report;
mod rules;
mod soak;
mod tally;
mod troubles;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{panic, thread};

use crate::fleet::Fleet;
use crate::keys::Keys;
use crate::memory::Memory;
use crate::soak::Soak;

const USAGE: &str = "usage: dashpot-chaos --program FILE [--seconds N] [--seed N] [--instead 'THIS=>THAT']

  --program  the `dashpot` that is put to the test
  --seconds  how long; ten minutes unless told otherwise
  --seed     which faults, and when; another one each time, and told
  --instead  rules and arguments with that in the place of this, while callers expect this: to see that it is noticed";

struct Wanted {
    program: PathBuf,
    seconds: u64,
    seed: u64,
    instead: Option<(String, String)>,
}

fn wanted(mut arguments: impl Iterator<Item = String>) -> Option<Wanted> {
    let seed = fastrand::u64(..1_000_000);
    let mut wanted = Wanted { program: PathBuf::new(), seconds: 600, seed, instead: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next()?;
        match name.as_str() {
            "--program" => wanted.program = value.into(),
            "--seconds" => wanted.seconds = value.parse().ok()?,
            "--instead" => {
                let (this, that) = value.split_once("=>")?;
                wanted.instead = Some((this.to_owned(), that.to_owned()));
            }
            "--seed" => wanted.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    wanted.program.is_file().then_some(wanted)
}

/// Whether some thread or task of the soak's own panicked: then it saw less than it should have.
static PANICKED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let Some(wanted) = wanted(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    println!("seed {}, {} s", wanted.seed, wanted.seconds);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        before(info);
    }));
    let (backend, seen) = runtime.block_on(backend::serve());
    let fleet = Fleet::start(&wanted.program, wanted.instead, backend, seen);
    let length = Duration::from_secs(wanted.seconds);
    let soak = Arc::new(Soak::new(fleet, wanted.seed, length, runtime.handle().clone()));

    callers::call(&soak);
    let (memory, keys) = (Memory::watch(&soak), Keys::watch(&soak));
    for breaking in faults::begin(&soak) {
        if breaking.join().is_err() {
            soak.wrong("what breaks things broke itself: see above");
        }
    }
    // Once more with nothing broken.
    soak.sleep(2.0);
    let well = report::tell(&soak, &memory, &keys);
    soak.end();
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(memory);
    // Directories go with it, once the last of its threads has let go.
    for _ in 0..100 {
        if Arc::strong_count(&soak) == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    drop(soak);
    if PANICKED.load(Ordering::Relaxed) {
        println!("some part of the soak broke: see above");
    }
    if well && !PANICKED.load(Ordering::Relaxed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
