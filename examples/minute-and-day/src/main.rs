//! Two limits on one caller, taken together or not at all.
//!
//! Whoever is over the minute's limit keeps trying and loses nothing of the day's.

use std::error::Error;

use dashpot::{Algorithm, Check, MemoryStore, Policy, Quota};

fn main() -> Result<(), Box<dyn Error>> {
    let store = MemoryStore::new();
    let minute = Policy::new("minute", Quota::per_minute(3))?;
    let day = Policy::builder("day", Quota::per_day(1000))
        .algorithm(Algorithm::FixedWindow)
        .zone("Europe/Berlin".parse()?)
        .build()?;
    let both = [Check::new(&minute, "alice"), Check::new(&day, "alice")];

    for request in 1..=10 {
        let decision = store.decide_now(&both);
        let deniers: Vec<_> = decision.denied().map(|status| status.policy().name()).collect();
        match decision.retry_after() {
            None => println!("request {request}: served"),
            Some(wait) => println!("request {request}: over {deniers:?}, wait {wait:?}"),
        }
    }

    let today = store.decide_now(&[Check::new(&day, "alice").cost(0)]);
    for status in today.statuses() {
        println!("{} of {} left today", status.remaining(), status.limit());
        assert!(status.remaining() >= 997, "denials took nothing of the day");
    }
    Ok(())
}
