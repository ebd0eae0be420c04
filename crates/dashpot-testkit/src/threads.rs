use std::sync::Barrier;
use std::thread;

/// Runs `work` on so many threads at once, each told its number, and says what they return.
///
/// # Panics
/// If one of them does.
pub fn on_all_threads<T: Send>(threads: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(usize::try_from(threads).expect("a few"));
    thread::scope(|scope| {
        let run = |thread| {
            start.wait();
            work(thread)
        };
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
