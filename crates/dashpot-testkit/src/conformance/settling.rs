//! Charging what was really used.

use dashpot::{Algorithm, Reservation, Store};

use super::{Subject, ask, five, fresh_key, remaining, reserve, settle};

/// All but concurrency, where any settlement releases the whole permit.
const USING_UP: [Algorithm; 5] = [
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::FixedWindow,
    Algorithm::SlidingLog,
    Algorithm::SlidingWindow,
];

/// Settling for less gives the rest back; settling for nothing gives all of it back.
pub async fn unused_units_come_back(subject: &impl Subject) {
    for algorithm in USING_UP {
        let (policy, key) = (five(algorithm), fresh_key());
        let all = reserve(subject, &policy, &key, 5).await;
        assert_eq!(remaining(subject, &policy, &key).await, 0, "{policy}");
        settle(subject, all, 2).await;
        assert_eq!(remaining(subject, &policy, &key).await, 3, "{policy}");

        let rest = reserve(subject, &policy, &key, 3).await;
        settle(subject, rest, 0).await;
        assert_eq!(remaining(subject, &policy, &key).await, 3, "{policy}");
    }
}

/// Settling for what was reserved changes nothing, and never settling neither.
pub async fn what_was_used_stays_charged(subject: &impl Subject) {
    for algorithm in USING_UP {
        let (policy, key) = (five(algorithm), fresh_key());
        drop(reserve(subject, &policy, &key, 1).await);
        let settled = reserve(subject, &policy, &key, 3).await;
        settle(subject, settled, 3).await;
        assert_eq!(remaining(subject, &policy, &key).await, 1, "{policy}");
    }
}

/// Settling for more charges the excess, even beyond the limit.
pub async fn a_debt_is_charged_whether_it_fits_or_not(subject: &impl Subject) {
    for algorithm in USING_UP {
        let (policy, key) = (five(algorithm), fresh_key());
        let one = reserve(subject, &policy, &key, 1).await;
        settle(subject, one, 4).await;
        assert_eq!(remaining(subject, &policy, &key).await, 1, "{policy}");

        let last = reserve(subject, &policy, &key, 1).await;
        settle(subject, last, 20).await;
        assert_eq!(remaining(subject, &policy, &key).await, 0, "{policy}");
        let denial = ask(subject, &policy, &key, 1).await;
        assert!(!denial.is_allowed() && !denial.is_never(), "{policy}");
        assert!(ask(subject, &policy, &key, 0).await.is_allowed(), "{policy}");
    }
}

/// A permit of three makes room for three when it is settled, whatever for.
pub async fn a_permit_comes_back_whatever_was_used(subject: &impl Subject) {
    let policy = five(Algorithm::Concurrency);
    for used in [0, 2, 3, 100] {
        let key = fresh_key();
        let three = reserve(subject, &policy, &key, 3).await;
        let two = reserve(subject, &policy, &key, 2).await;
        assert!(!ask(subject, &policy, &key, 1).await.is_allowed());
        settle(subject, three, used).await;
        assert_eq!(remaining(subject, &policy, &key).await, 3);
        settle(subject, two, used).await;
        assert_eq!(remaining(subject, &policy, &key).await, 5);
    }
}

/// What is undone at once comes back whole, and nothing of what others took.
pub async fn what_is_undone_is_as_if_it_had_not_been(subject: &impl Subject) {
    for algorithm in USING_UP.into_iter().chain([Algorithm::Concurrency]) {
        let (policy, key) = (five(algorithm), fresh_key());
        let all = reserve(subject, &policy, &key, 5).await;
        undo(subject, all).await;
        assert_eq!(remaining(subject, &policy, &key).await, 5, "{policy}");

        let one = reserve(subject, &policy, &key, 1).await;
        let three = reserve(subject, &policy, &key, 3).await;
        undo(subject, three).await;
        assert_eq!(remaining(subject, &policy, &key).await, 4, "{policy}");
        undo(subject, one).await;
        assert!(ask(subject, &policy, &key, 4).await.is_allowed(), "{policy}");
    }
}

async fn undo(subject: &impl Subject, reservation: Reservation) {
    subject.store().undo(&reservation).await.expect("the store answers");
}
