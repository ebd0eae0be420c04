//! Test code that is rate limited without waiting.

use std::error::Error;
use std::time::Duration;

use dashpot::{Limiter, ManualClock, MemoryStore, Policy, Quota};

/// The code under test: it sends a newsletter, but at most once a week.
fn send(limiter: &Limiter, to: &str) -> bool {
    limiter.check(to).is_allowed()
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::default();
    let policy = Policy::new("newsletter", "1/week".parse::<Quota>()?)?;
    let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));

    assert!(send(&limiter, "alice@example.com"));
    assert!(!send(&limiter, "alice@example.com"));

    clock.advance(Duration::from_secs(7 * 86_400 - 1));
    assert!(!send(&limiter, "alice@example.com"), "a second too early");
    clock.advance(Duration::from_secs(1));
    assert!(send(&limiter, "alice@example.com"));
    println!("a week went by, and nobody waited");
    Ok(())
}
