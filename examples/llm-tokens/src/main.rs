//! Charge what a call really cost: reserve a guess, settle with the truth.

use dashpot::{Limiter, Quota};

/// Stands for the model: answers, and says how many tokens it took.
fn complete(prompt: &str) -> (String, u64) {
    (format!("You said: {prompt}"), 40 + prompt.len() as u64)
}

fn main() {
    let tokens = Limiter::new(Quota::per_minute(1_000));
    for prompt in ["hello", "tell me a story", "a longer one", "and another"] {
        let guess = 400;
        match tokens.reserve("alice", guess) {
            Ok(reservation) => {
                let (answer, used) = complete(prompt);
                // Less than the guess comes back at once; more would be charged as debt.
                tokens.settle(reservation, used);
                println!("{answer} ({used} tokens)");
            }
            Err(denied) => println!("out of tokens, try again in {:?}", denied.retry_after()),
        }
    }
    let decision = tokens.peek("alice");
    let left: u64 = decision.statuses().iter().map(|status| status.remaining()).sum();
    println!("{left} tokens left");
    assert!(left >= 700, "four guesses of 400 would not have fitted");
}
