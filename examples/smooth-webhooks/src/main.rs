//! Send at an even pace: a leaky bucket with a queue tells each message how long to wait.

use std::error::Error;
use std::thread;

use dashpot::{Algorithm, Limiter, MemoryStore, Policy, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::builder("webhooks", Quota::per_second(50))
        .algorithm(Algorithm::LeakyBucket)
        .queue(4)
        .build()?;
    let limiter = Limiter::on(policy, MemoryStore::new());

    let messages: Vec<_> = (1..=7).map(|message| (message, limiter.check("example.com"))).collect();
    for (message, decision) in messages {
        if decision.is_allowed() {
            thread::sleep(
                decision.delay().saturating_sub(limiter.store().now().since(decision.at())),
            );
            println!("message {message} sent after {:?}", decision.delay());
        } else {
            println!("message {message} dropped: the queue is full");
        }
    }
    Ok(())
}
