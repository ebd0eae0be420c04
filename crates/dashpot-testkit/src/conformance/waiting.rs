//! Waiting.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota, Window};

use super::{Subject, ask, fresh_key};

/// Who waits as long as it was told, and is alone, passes.
pub async fn waiting_as_told_is_enough(subject: &impl Subject) {
    let window = Window::new(Duration::from_millis(200)).unwrap();
    for algorithm in Algorithm::ALL {
        if algorithm == Algorithm::Concurrency {
            continue;
        }
        let quota = Quota::new(1, window);
        let policy = Policy::builder("short", quota).algorithm(algorithm).build().unwrap();
        let key = fresh_key();
        for _ in 0..3 {
            // On real time a window may end between two calls; it does not do so for ever.
            let mut denial = ask(subject, &policy, &key, 1).await;
            while denial.is_allowed() {
                denial = ask(subject, &policy, &key, 1).await;
            }
            let wait = denial.retry_after().expect("a wait is known");
            assert!(!wait.is_zero(), "{policy}");
            subject.advance(wait).await;
            let decision = ask(subject, &policy, &key, 1).await;
            assert!(decision.is_allowed(), "{policy}: told {wait:?}, then {decision:?}");
        }
    }
}
