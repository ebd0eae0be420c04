//! One key, one policy.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota, Window};

use super::{Subject, ask, five, fresh_key, remaining, several};

/// Under every algorithm, as many pass as the limit says, and not one more.
pub async fn a_fresh_key_allows_its_limit_then_denies(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        for left in (0..5).rev() {
            let decision = ask(subject, &policy, &key, 1).await;
            let status = decision.statuses()[0];
            assert!(decision.is_allowed(), "{policy}: {status:?}");
            assert_eq!((status.limit(), status.remaining()), (5, left), "{policy}");
            assert_eq!(status.retry_after(), None, "{policy}");
            assert_eq!(status.available_after() == Some(Duration::ZERO), left > 0, "{policy}");
        }
        let decision = ask(subject, &policy, &key, 1).await;
        let status = decision.statuses()[0];
        assert!(!decision.is_allowed() && !decision.is_never(), "{policy}: {status:?}");
        assert_eq!((status.limit(), status.remaining()), (5, 0), "{policy}");

        let timed = algorithm != Algorithm::Concurrency;
        assert_eq!(status.retry_after().is_some(), timed, "{policy}");
        assert_eq!(status.available_after().is_some(), timed, "{policy}");
        assert_eq!(!status.reset_after().is_zero(), timed, "{policy}");
        let longest = 2 * Window::DAY.length();
        assert!(status.retry_after().is_none_or(|wait| !wait.is_zero() && wait <= longest));
    }
}

/// A cost of three takes three.
pub async fn a_large_cost_counts_as_many(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        let decision = ask(subject, &policy, &key, 3).await;
        assert!(decision.is_allowed(), "{policy}");
        assert_eq!(decision.statuses()[0].remaining(), 2, "{policy}");
        let decision = ask(subject, &policy, &key, 3).await;
        assert!(!decision.is_allowed() && !decision.is_never(), "{policy}");
        assert_eq!(decision.statuses()[0].remaining(), 2, "{policy}");
        assert!(ask(subject, &policy, &key, 2).await.is_allowed(), "{policy}");
    }
}

/// A cost of zero always passes, even where nothing is left, and takes nothing.
pub async fn a_cost_of_zero_looks_and_changes_nothing(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        for left in [5, 0] {
            for _ in 0..3 {
                let peek = ask(subject, &policy, &key, 0).await;
                assert!(peek.is_allowed(), "{policy}");
                assert_eq!(peek.statuses()[0].remaining(), left, "{policy}");
            }
            assert_eq!(ask(subject, &policy, &key, 5).await.is_allowed(), left == 5, "{policy}");
        }
    }
}

/// However often a key is denied, what it has left stays.
pub async fn a_denial_changes_nothing(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        assert!(ask(subject, &policy, &key, 3).await.is_allowed(), "{policy}");
        for _ in 0..10 {
            assert!(!ask(subject, &policy, &key, 4).await.is_allowed(), "{policy}");
        }
        assert!(ask(subject, &policy, &key, 2).await.is_allowed(), "{policy}");
    }
}

/// Who asks for more than the limit is told that waiting does not help.
pub async fn more_than_the_limit_is_never_granted(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        for cost in [6, u64::MAX] {
            let decision = ask(subject, &policy, &key, cost).await;
            assert!(!decision.is_allowed() && decision.is_never(), "{policy}");
            assert_eq!(decision.retry_after(), None, "{policy}");
            assert_eq!(decision.statuses()[0].remaining(), 5, "{policy}");
        }
    }
}

/// A policy of none at all denies for ever.
pub async fn a_count_of_zero_grants_nothing(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (several("none", algorithm, 0), fresh_key());
        let decision = ask(subject, &policy, &key, 1).await;
        let status = decision.statuses()[0];
        assert!(!decision.is_allowed() && decision.is_never(), "{policy}");
        assert_eq!((status.limit(), status.remaining()), (0, 0), "{policy}");
        assert_eq!(status.available_after(), None, "{policy}");
        assert!(ask(subject, &policy, &key, 0).await.is_allowed(), "{policy}");
    }
}

/// Without a limit everything passes, and all remains.
pub async fn no_limit_grants_everything(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let unlimited = Policy::builder("unlimited", Quota::UNLIMITED).algorithm(algorithm);
        let (policy, key) = (unlimited.build().unwrap(), fresh_key());
        for cost in [1, u64::MAX, u64::MAX] {
            let decision = ask(subject, &policy, &key, cost).await;
            let status = decision.statuses()[0];
            assert!(decision.is_allowed(), "{policy}");
            assert_eq!((status.limit(), status.remaining()), (u64::MAX, u64::MAX), "{policy}");
            assert_eq!(status.reset_after(), Duration::ZERO, "{policy}");
            assert_eq!(status.available_after(), Some(Duration::ZERO), "{policy}");
        }
    }
}

/// The first passes at once, the next after one interval, the one after that after two; what finds
/// the queue full is denied.
pub async fn a_queue_tells_how_long_to_wait(subject: &impl Subject) {
    let hourly = Policy::builder("queue", Quota::new(24, Window::DAY))
        .algorithm(Algorithm::LeakyBucket)
        .queue(3)
        .undelayed(1);
    let (policy, key) = (hourly.build().unwrap(), fresh_key());
    let hour = Window::HOUR.length();
    for full_hours in [0, 0, 1, 2] {
        let decision = ask(subject, &policy, &key, 1).await;
        assert!(decision.is_allowed());
        // On real time, a little has drained since.
        let (most, least) = (hour * full_hours, (hour * full_hours).saturating_sub(hour / 2));
        assert!((least..=most).contains(&decision.delay()), "{decision:?}");
    }
    let decision = ask(subject, &policy, &key, 1).await;
    assert!(!decision.is_allowed());
    assert_eq!(decision.delay(), Duration::ZERO);
    assert_eq!(remaining(subject, &policy, &key).await, 0);
}
