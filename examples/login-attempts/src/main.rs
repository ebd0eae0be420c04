//! Slow down password guessing: five attempts in five minutes, by address and e-mail together.
//!
//! A sliding log is exact: no burst at a boundary, whatever the attacker knows about the clock.

use std::error::Error;

use dashpot::{Algorithm, KeyBuf, Limiter, MemoryStore, Policy};

fn main() -> Result<(), Box<dyn Error>> {
    let policy =
        Policy::builder("login", "5/5min".parse()?).algorithm(Algorithm::SlidingLog).build()?;
    let limiter = Limiter::on(policy, MemoryStore::new());

    // Each value is kept apart from the next, so nobody can pass for somebody else by choosing an
    // address or an e-mail cleverly.
    let caller: KeyBuf = ["203.0.113.7", "alice@example.com"].into_iter().collect();
    for attempt in 1..=7 {
        let decision = limiter.check(&caller);
        match decision.retry_after() {
            None => println!("attempt {attempt}: try your password"),
            Some(wait) => println!("attempt {attempt}: wait {} s", wait.as_secs_f64().ceil()),
        }
    }

    // The right password: a fresh start.
    limiter.reset(&caller);
    assert!(limiter.check(&caller).is_allowed());
    Ok(())
}
