//! Scripts that the server has forgotten are nobody's business but the store's.

use dashpot::{Algorithm, Check, Cost, KeyOperation, Store, Window};
use dashpot_testkit::RedisServer;

use super::common::{
    PATIENT, Rig, allowed, daily, left, manage, millis, policy, run, until_answered,
};

fn flush(server: &RedisServer) {
    assert!(server.command(&["SCRIPT", "FLUSH"]).is_ok());
}

#[test]
fn the_first_call_after_a_flush_may_be_any() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let [bucket, permits] =
            [Algorithm::TokenBucket, Algorithm::Concurrency].map(|algorithm| daily(algorithm, 10));
        for policy in [bucket, permits] {
            let check = Check::new(policy, "alice");
            let decision = rig.store.decide(&[check]).await.unwrap();
            let reservation = check.reservation(&decision).unwrap();
            flush(&rig.server);
            rig.store.settle(&reservation, Cost::new(0)).await.unwrap();
            assert_eq!(left(&rig.store, policy, "alice").await, 10);

            allowed(&rig.store, policy, "alice").await;
            for operation in [KeyOperation::Peek, KeyOperation::Reset, KeyOperation::Unblock] {
                flush(&rig.server);
                manage(&rig.store, policy, "alice", operation).await;
            }
            assert_eq!(left(&rig.store, policy, "alice").await, 10);

            allowed(&rig.store, policy, "bob").await;
            flush(&rig.server);
            let name = policy.name();
            let found = rig.store.list(Some(name), 100).await.unwrap();
            assert!(found.iter().any(|kept| kept.key == b"bob"), "{found:?}");
            flush(&rig.server);
            assert!(rig.store.reset_all(Some(name), 100).await.unwrap() >= 1);
            assert_eq!(left(&rig.store, policy, "bob").await, 10);
        }
        rig.is_clean();
    });
}

#[test]
fn several_checks_settlements_and_operators_go_on_while_scripts_are_flushed() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let policies = Algorithm::ALL.map(|algorithm| daily(algorithm, 1000));
        let callers: Vec<_> = (0..16)
            .map(|number| {
                let store = rig.store.clone();
                tokio::spawn(async move {
                    let keys = [format!("one-{number}"), format!("two-{number}")];
                    for _ in 0..25 {
                        let checks: Vec<_> = policies
                            .iter()
                            .flat_map(|policy| {
                                keys.each_ref().map(|key| Check::new(policy, key.as_str()).cost(3))
                            })
                            .collect();
                        let decision = store.decide(&checks).await.unwrap();
                        assert!(decision.is_allowed());
                        for check in &checks {
                            let reservation = check.reservation(&decision).unwrap();
                            store.settle(&reservation, Cost::ONE).await.unwrap();
                        }
                        manage(&store, policies[0], &keys[0], KeyOperation::Peek).await;
                    }
                    keys
                })
            })
            .collect();
        while !callers.iter().all(tokio::task::JoinHandle::is_finished) {
            flush(&rig.server);
            tokio::time::sleep(millis(2)).await;
        }
        for caller in callers {
            for key in caller.await.unwrap() {
                for policy in policies {
                    // Of each call one unit stays, of which buckets drain some; of permits, none.
                    let used = 1000 - left(&rig.store, policy, &key).await;
                    let expected = match policy.algorithm() {
                        Algorithm::Concurrency => 0..=0,
                        Algorithm::TokenBucket | Algorithm::LeakyBucket => 24..=25,
                        _ => 25..=25,
                    };
                    assert!(expected.contains(&used), "{policy:?}: {used}");
                }
            }
        }
        rig.is_clean();
    });
}

#[test]
fn a_script_that_is_killed_off_by_a_restart_is_sent_again() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let policy = policy("restarted", Algorithm::SlidingWindow, 10, Window::HOUR);
        allowed(&rig.store, policy, "alice").await;
        rig.server.restart();
        until_answered(&rig.store, millis(1000)).await;
        assert_eq!(left(&rig.store, policy, "alice").await, 10);
    });
}
