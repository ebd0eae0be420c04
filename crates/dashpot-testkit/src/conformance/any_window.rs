//! Buckets that any window will do for.

use std::time::Duration;

use dashpot::{Algorithm, Check, Outcome, Policy, Quota, Window};

use super::{Subject, ask, decide, fresh_key, remaining, reserve, settle};

/// A bucket of any window, at most `limit` at once, which a slower or a faster one may go on with.
fn any_window(algorithm: Algorithm, count: u64, window: Window, limit: u64) -> Policy {
    let quota = Quota::new(count, window).burst(limit);
    Policy::builder("any", quota).algorithm(algorithm).any_window().build().unwrap()
}

const BUCKETS: [Algorithm; 2] = [Algorithm::TokenBucket, Algorithm::LeakyBucket];

/// Whether a wait is so many hours, or a little less, since on real time some has passed.
#[track_caller]
fn assert_hours(wait: Duration, hours: f64, policy: &Policy) {
    let told = wait.as_secs_f64() / 3600.0;
    assert!(
        told > hours - 0.25 && told < hours + 0.000_001,
        "{policy}: {told} and not {hours} hours"
    );
}

/// If any window will do, a change of it, up or down, leaves when the bucket is full again: not the units.
pub async fn a_changed_window_carries_the_time(subject: &impl Subject) {
    for algorithm in BUCKETS {
        let daily = any_window(algorithm, 1, Window::DAY, 1);
        let hourly = any_window(algorithm, 1, Window::HOUR, 1);
        let key = fresh_key();
        assert!(ask(subject, &daily, &key, 1).await.is_allowed(), "{daily}");
        let denial = ask(subject, &hourly, &key, 1).await;
        assert!(!denial.is_allowed() && !denial.is_never(), "{hourly}");
        assert_hours(denial.retry_after().unwrap(), 24.0, &hourly);
        assert_hours(denial.statuses()[0].reset_after(), 24.0, &hourly);

        // Of seven a day, a unit takes no whole number of nanoseconds. One whole day is all of them.
        let seven = any_window(algorithm, 7, Window::DAY, 9);
        assert_eq!(remaining(subject, &seven, &key).await, 2, "{seven}");
        assert!(ask(subject, &seven, &key, 2).await.is_allowed(), "{seven}");
        let denial = ask(subject, &daily, &key, 1).await;
        assert_hours(denial.retry_after().unwrap(), 24.0 * 9.0 / 7.0, &daily);

        let key = fresh_key();
        let deep = any_window(algorithm, 1, Window::HOUR, 6);
        assert!(ask(subject, &deep, &key, 6).await.is_allowed(), "{deep}");
        let denial = ask(subject, &daily, &key, 1).await;
        assert!(!denial.is_allowed(), "{daily}");
        assert_hours(denial.retry_after().unwrap(), 6.0, &daily);
        // Ninety minutes each: four of them are used.
        let ninety = any_window(algorithm, 16, Window::DAY, 5);
        assert_eq!(remaining(subject, &ninety, &key).await, 1, "{ninety}");
        assert_eq!(remaining(subject, &deep, &key).await, 0, "{deep}");
    }
}

/// A bucket of any window has nothing to do with one of the same name and this window, nor with another name or
/// algorithm.
pub async fn any_window_does_not_mix_with_one(subject: &impl Subject) {
    let key = fresh_key();
    for algorithm in BUCKETS {
        let quota = Quota::new(5, Window::DAY);
        let plain = Policy::builder("mixed", quota).algorithm(algorithm).build().unwrap();
        let named = |name| Policy::builder(name, quota).algorithm(algorithm).any_window();
        let (any, other) = (named("mixed").build().unwrap(), named("other").build().unwrap());
        for (policy, taken) in [(&plain, 5), (&any, 4), (&other, 3)] {
            assert_eq!(remaining(subject, policy, &key).await, 5, "{policy}");
            assert!(ask(subject, policy, &key, taken).await.is_allowed(), "{policy}");
        }
        for (policy, left) in [(&plain, 0), (&any, 1), (&other, 2)] {
            assert_eq!(remaining(subject, policy, &key).await, left, "{policy}");
        }
        // They may meet in one call, and are two then.
        let both = [Check::new(&plain, &key), Check::new(&any, &key)];
        let denial = decide(subject, &both).await;
        let outcomes: Vec<_> = denial.statuses().iter().map(|status| status.outcome()).collect();
        assert_eq!(outcomes, [Outcome::Deny, Outcome::Allow], "{any}");
        assert_eq!(remaining(subject, &any, &key).await, 1, "{any}");
    }
}

/// In one call that asks about a key under several windows, only what passes under each is granted, and it is charged at
/// the slowest rate, in whatever order they are named.
pub async fn several_windows_in_one_call_are_merged(subject: &impl Subject) {
    for algorithm in BUCKETS {
        let slow = any_window(algorithm, 1, Window::DAY, 5);
        let fast = any_window(algorithm, 1, Window::HOUR, 30);
        for (first, second) in [(&slow, &fast), (&fast, &slow)] {
            let key = fresh_key();
            let (one, two) = (Check::new(first, &key), Check::new(second, &key));
            let decision = decide(subject, &[one, two.cost(4), one.cost(1)]).await;
            assert!(!decision.is_allowed() && decision.is_never(), "six of five: {decision:?}");
            let decision = decide(subject, &[one, two.cost(0)]).await;
            assert!(decision.is_allowed(), "{decision:?}");
            for status in decision.statuses() {
                assert_eq!((status.limit(), status.remaining()), (5, 4), "{decision:?}");
                assert_hours(status.reset_after(), 24.0, first);
            }
            // The fast one has room for six more hours, and would charge two.
            let decision = decide(subject, &[one, two.cost(1)]).await;
            assert!(decision.is_allowed(), "{decision:?}");
            assert_hours(decision.statuses()[0].reset_after(), 72.0, first);
            let denial = decide(subject, &[one, two.cost(0)]).await;
            assert!(!denial.is_allowed() && !denial.is_never(), "{denial:?}");
            assert_eq!(denial.denied().count(), 2, "{denial:?}");
            assert_hours(denial.retry_after().unwrap(), 43.0, first);
            assert_eq!(remaining(subject, &slow, &key).await, 2, "{slow}");
        }
    }
}

/// What is given back under another window is the time it took, and no more; what was used beyond it takes as long as
/// it would have.
pub async fn what_is_given_back_is_the_time_it_took(subject: &impl Subject) {
    for algorithm in BUCKETS {
        let slow = any_window(algorithm, 1, Window::DAY, 5);
        let fast = any_window(algorithm, 1, Window::HOUR, 5);
        let reset_after =
            async |key: &[u8]| ask(subject, &fast, key, 0).await.statuses()[0].reset_after();
        let key = fresh_key();
        let cheap = reserve(subject, &fast, &key, 2).await;
        assert!(ask(subject, &slow, &key, 1).await.is_allowed(), "{slow}");
        settle(subject, cheap, 0).await;
        assert_hours(reset_after(&key).await, 24.0, &slow);

        let dear = reserve(subject, &slow, &key, 1).await;
        assert_hours(reset_after(&key).await, 48.0, &slow);
        settle(subject, dear, 0).await;
        assert_hours(reset_after(&key).await, 24.0, &slow);

        let key = fresh_key();
        let debt = reserve(subject, &fast, &key, 1).await;
        assert!(ask(subject, &slow, &key, 1).await.is_allowed(), "{slow}");
        settle(subject, debt, 3).await;
        assert_hours(reset_after(&key).await, 27.0, &slow);
    }
}
