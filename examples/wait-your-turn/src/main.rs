//! Wait until a limit lets you pass, in order, and give up in time.

use std::error::Error;
use std::time::Duration;

use dashpot::{Limiter, NotReady, Quota};
use tokio::runtime::Builder;

/// Fetches a page when it is its turn; any executor will do.
async fn fetch(limiter: &Limiter, page: u32, patience: Duration) -> Result<(), NotReady> {
    let ready = limiter.until_ready("example.com", 1, patience).await?;
    let millis = ready.at().as_nanos() % 60_000_000_000 / 1_000_000;
    println!("page {page}: fetched {millis} ms into the minute");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    // A site that asks to be left alone for 50 milliseconds between two requests.
    let limiter = Limiter::new(Quota::per_second(20).burst(1));
    let runtime = Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let fetches = (1..=5).map(|page| {
            let limiter = limiter.clone();
            tokio::spawn(async move { fetch(&limiter, page, Duration::from_secs(10)).await })
        });
        for fetched in fetches.collect::<Vec<_>>() {
            fetched.await??;
        }
        // Somebody in a hurry is told at once that it is not worth waiting.
        match fetch(&limiter, 6, Duration::from_millis(10)).await {
            Err(NotReady::TooLate { retry_after: Some(wait) }) => {
                println!("page 6: not within 10 ms, but in {} ms", wait.as_millis());
            }
            other => other?,
        }
        Ok(())
    })
}
