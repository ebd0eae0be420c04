//! Tests about time, on machines that now and then stand still.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What nobody should blame a store for.
const STALL: Duration = Duration::from_millis(150);
const TICK: Duration = Duration::from_millis(10);

/// Runs a test, and again if it fails while the whole machine stood still: no deadline can be kept then. One
/// that fails on a machine that runs has failed.
pub(crate) fn calmly<F: Future<Output = ()>>(test: impl Fn() -> F) {
    for attempt in 1.. {
        let (result, stalled) = watched(|| {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.enable_all().build().unwrap().block_on(test());
        });
        match result {
            Ok(()) => return,
            Err(panic) if stalled < STALL || attempt == 3 => resume_unwind(panic),
            Err(_) => eprintln!("once more: the machine stood still for {stalled:?}"),
        }
    }
}

/// What came of it, and how long a thread that only sleeps was kept from waking meanwhile, at most.
fn watched(work: impl FnOnce()) -> (thread::Result<()>, Duration) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                thread::sleep(TICK);
                longest = longest.max(start.elapsed().saturating_sub(TICK));
            }
            longest
        });
        let result = catch_unwind(AssertUnwindSafe(work));
        done.store(true, Ordering::Relaxed);
        (result, watch.join().expect("it only sleeps"))
    })
}
