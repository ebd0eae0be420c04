//! What an operator may do to one key.

use std::time::Duration;

use dashpot::{Algorithm, KeyOperation, Policy, Timestamp};

use super::{Subject, ask, five, fresh_key, manage, remaining};

const HOUR: Duration = Duration::from_secs(3600);

/// A peek answers like a check of cost zero, and changes nothing.
pub async fn a_peek_tells_how_a_key_stands(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        assert!(ask(subject, &policy, &key, 2).await.is_allowed(), "{policy}");
        for _ in 0..3 {
            let peek = manage(subject, &policy, &key, KeyOperation::Peek).await;
            let status = peek.statuses()[0];
            assert!(peek.is_allowed(), "{policy}");
            assert_eq!((status.limit(), status.remaining()), (5, 3), "{policy}");
        }
    }
}

/// After a reset all is there again, and nobody else's counts have changed.
pub async fn a_reset_forgets_what_was_counted(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key, other) = (five(algorithm), fresh_key(), fresh_key());
        for key in [&key, &other] {
            assert!(ask(subject, &policy, key, 5).await.is_allowed(), "{policy}");
        }
        let reset = manage(subject, &policy, &key, KeyOperation::Reset).await;
        assert_eq!(reset.statuses()[0].remaining(), 5, "{policy}");
        assert_eq!(reset.statuses()[0].reset_after(), Duration::ZERO, "{policy}");
        assert_eq!(remaining(subject, &policy, &other).await, 0, "{policy}");
        assert!(ask(subject, &policy, &key, 5).await.is_allowed(), "{policy}");
    }
}

/// A block denies every cost but zero, says how long, and leaves what was counted.
pub async fn a_block_denies_until_it_is_lifted(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        assert!(ask(subject, &policy, &key, 2).await.is_allowed(), "{policy}");
        let blocked = block(subject, &policy, &key, HOUR).await;
        assert_eq!(blocked, 0, "{policy}");

        let denial = ask(subject, &policy, &key, 1).await;
        assert!(!denial.is_allowed() && !denial.is_never(), "{policy}");
        let wait = denial.retry_after().expect("a block's end is known");
        assert!(wait > HOUR / 2 && wait <= HOUR, "{policy}: {wait:?}");
        assert!(ask(subject, &policy, &key, 6).await.is_never(), "{policy}");
        assert!(ask(subject, &policy, &key, 0).await.is_allowed(), "{policy}");

        let lifted = manage(subject, &policy, &key, KeyOperation::Unblock).await;
        assert_eq!(lifted.statuses()[0].remaining(), 3, "{policy}");
        assert!(ask(subject, &policy, &key, 3).await.is_allowed(), "{policy}");
    }
}

/// A block is over when its time has come, or at once if that lies in the past.
pub async fn a_block_ends_by_itself(subject: &impl Subject) {
    let (policy, key) = (five(Algorithm::TokenBucket), fresh_key());
    block(subject, &policy, &key, Duration::from_millis(200)).await;
    let denial = ask(subject, &policy, &key, 5).await;
    subject.advance(denial.retry_after().expect("it is blocked")).await;
    assert!(ask(subject, &policy, &key, 5).await.is_allowed());

    let key = fresh_key();
    block(subject, &policy, &key, HOUR).await;
    let past = KeyOperation::Block(Timestamp::EPOCH);
    let lifted = manage(subject, &policy, &key, past).await;
    assert_eq!(lifted.statuses()[0].remaining(), 5);
    assert!(ask(subject, &policy, &key, 1).await.is_allowed());
}

/// A reset forgives what was used, not what the block is for.
pub async fn a_block_outlives_a_reset(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        assert!(ask(subject, &policy, &key, 5).await.is_allowed(), "{policy}");
        block(subject, &policy, &key, HOUR).await;
        let reset = manage(subject, &policy, &key, KeyOperation::Reset).await;
        assert_eq!(reset.statuses()[0].remaining(), 0, "{policy}");
        assert!(!ask(subject, &policy, &key, 1).await.is_allowed(), "{policy}");
        let lifted = manage(subject, &policy, &key, KeyOperation::Unblock).await;
        assert_eq!(lifted.statuses()[0].remaining(), 5, "{policy}");
    }
}

/// Blocks a key for so long by the store's own time, and answers what remains.
async fn block(subject: &impl Subject, policy: &Policy, key: &[u8], wait: Duration) -> u64 {
    let now = manage(subject, policy, key, KeyOperation::Peek).await.at();
    let blocked = manage(subject, policy, key, KeyOperation::Block(now.after(wait))).await;
    blocked.statuses()[0].remaining()
}
