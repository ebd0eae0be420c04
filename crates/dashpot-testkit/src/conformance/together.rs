//! Several checks in one call.

use dashpot::{Algorithm, Check, Outcome};

use super::{Subject, ask, decide, five, fresh_key, remaining, several};

/// Nothing asked, nothing denied.
pub async fn no_checks_at_all_are_allowed(subject: &impl Subject) {
    assert!(decide(subject, &[]).await.is_allowed());
}

/// A denial burns no other quota, wherever it stands in the call and whatever the algorithms.
pub async fn one_denial_charges_nobody(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        for other in Algorithm::ALL {
            let (policy, narrow) = (five(algorithm), several("narrow", other, 1));
            let (key, spent) = (fresh_key(), fresh_key());
            assert!(ask(subject, &narrow, &spent, 1).await.is_allowed());

            let (passing, denying) = (Check::new(&policy, &key), Check::new(&narrow, &spent));
            for checks in [[passing, denying], [denying, passing]] {
                let decision = decide(subject, &checks).await;
                assert!(!decision.is_allowed(), "{policy} with {narrow}");
                for (check, status) in checks.iter().zip(decision.statuses()) {
                    let expected = match check.policy.name() {
                        "narrow" => (Outcome::Deny, 0),
                        _ => (Outcome::Allow, 5),
                    };
                    assert_eq!((status.outcome(), status.remaining()), expected, "{decision:?}");
                }
            }
            assert_eq!(remaining(subject, &policy, &key).await, 5, "{policy} with {narrow}");

            let all = [passing, Check::new(&narrow, &key)];
            assert!(decide(subject, &all).await.is_allowed(), "{policy} with {narrow}");
            assert_eq!(remaining(subject, &policy, &key).await, 4, "{policy} with {narrow}");
            assert_eq!(remaining(subject, &narrow, &key).await, 0, "{policy} with {narrow}");
        }
    }
}

/// All that denied are named, in the order of the checks, and the longest wait counts.
pub async fn every_denier_is_named(subject: &impl Subject) {
    let policies = [
        several("first", Algorithm::TokenBucket, 1),
        several("second", Algorithm::FixedWindow, 9),
        several("third", Algorithm::SlidingLog, 1),
    ];
    let key = fresh_key();
    let checks = policies.each_ref().map(|policy| Check::new(policy, &key));
    assert!(decide(subject, &checks).await.is_allowed());

    let denial = decide(subject, &checks).await;
    let deniers: Vec<_> = denial.denied().map(|status| status.policy().name()).collect();
    assert_eq!(deniers, ["first", "third"]);
    let longest = denial.denied().filter_map(|status| status.retry_after()).max();
    assert!(longest.is_some());
    assert_eq!(denial.retry_after(), longest);
}

/// Checks on the same policy and key count as one with the summed cost, and each gets the status
/// of the whole.
pub async fn checks_on_one_key_are_merged(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key, other) = (five(algorithm), fresh_key(), fresh_key());
        let (check, elsewhere) = (Check::new(&policy, &key), Check::new(&policy, &other));
        let decision = decide(subject, &[check, elsewhere, check.cost(2)]).await;
        assert!(decision.is_allowed(), "{policy}");
        let left: Vec<_> = decision.statuses().iter().map(|status| status.remaining()).collect();
        assert_eq!(left, [2, 4, 2], "{policy}");
        assert_eq!(remaining(subject, &policy, &key).await, 2, "{policy}");
    }
}

/// What fits one by one and not together is denied as a whole; what can never fit together is
/// never granted, however large the costs.
pub async fn merged_checks_are_denied_together(subject: &impl Subject) {
    for algorithm in Algorithm::ALL {
        let (policy, key) = (five(algorithm), fresh_key());
        assert!(ask(subject, &policy, &key, 1).await.is_allowed(), "{policy}");

        let check = Check::new(&policy, &key);
        let decision = decide(subject, &[check.cost(2), check.cost(3)]).await;
        assert_eq!(decision.denied().count(), 2, "{policy}");
        assert!(!decision.is_never(), "{policy}");

        let decision = decide(subject, &[check.cost(u64::MAX), check.cost(u64::MAX)]).await;
        assert_eq!(decision.denied().count(), 2, "{policy}");
        assert!(decision.is_never(), "{policy}");
        assert_eq!(remaining(subject, &policy, &key).await, 4, "{policy}");
    }
}
