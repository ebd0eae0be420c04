//! No fault lets more through than the limit: what is lost is lost to the callers.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Policy, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::Fault;

use super::common::{DEADLINE, PATIENT, Rig, daily, millis, run};
use super::load::{Call, Load, Pattern, Seen};

const LIMIT: usize = 500;

/// They get through all six limits in about a second if nothing happens.
const CALLERS: Pattern = Pattern { callers: 24, pause: millis(4), is_shared: true };

/// One of each algorithm.
fn policies() -> [&'static Policy; 6] {
    Algorithm::ALL.map(|algorithm| daily(algorithm, LIMIT as u64))
}

/// Loads one limit of each algorithm through a fault, and afterwards until all are used up.
async fn calls(rig: &Rig, fault: impl AsyncFn(&Rig)) -> Vec<Call> {
    let policies = policies();
    let load = Load::start(&rig.store, &policies, CALLERS);
    tokio::time::sleep(millis(100)).await;
    fault(rig).await;
    let start = Instant::now();
    for policy in policies {
        while !is_used_up(&rig.store, policy).await {
            assert!(start.elapsed() < Duration::from_secs(15), "{policy:?} is never used up");
            tokio::time::sleep(millis(20)).await;
        }
    }
    let calls = load.stop().await;
    rig.is_clean();
    calls
}

async fn is_used_up(store: &RedisStore, policy: &Policy) -> bool {
    let peek = store.decide(&[Check::new(policy, "shared").cost(0)]).await;
    peek.is_ok_and(|decision| decision.statuses()[0].remaining() == 0)
}

/// How many calls on each policy were so.
fn count(calls: &[Call], is_so: impl Fn(&Seen) -> bool) -> [usize; 6] {
    std::array::from_fn(|policy| {
        calls.iter().filter(|call| call.policy == policy && is_so(&call.seen)).count()
    })
}

fn never_more_than_the_limit(rig: impl AsyncFn() -> Rig, fault: impl AsyncFn(&Rig)) {
    run(async {
        let calls = calls(&rig().await, fault).await;
        let allowed = count(&calls, |seen| *seen == Seen::Allowed);
        let failed = count(&calls, |seen| matches!(seen, Seen::Failed(_)));
        println!("allowed {allowed:?}, failed {failed:?}");
        assert!(allowed.iter().all(|&allowed| allowed <= LIMIT), "{allowed:?}");
        // What callers did not get, calls that failed had taken.
        let lost = allowed.map(|allowed| LIMIT - allowed);
        assert!(lost.iter().zip(&failed).all(|(lost, failed)| lost <= failed), "{lost:?}");
        assert!(failed.iter().sum::<usize>() > 0, "nothing happened");
    });
}

async fn direct() -> Rig {
    Rig::direct(DEADLINE).await
}

async fn proxied() -> Rig {
    Rig::proxied(DEADLINE).await
}

#[test]
fn a_server_that_stands_still_gives_nothing_away() {
    never_more_than_the_limit(direct, async |rig| {
        for _ in 0..3 {
            rig.server.hang();
            tokio::time::sleep(millis(100)).await;
            rig.server.resume();
            tokio::time::sleep(millis(300)).await;
        }
    });
}

#[test]
fn connections_that_break_give_nothing_away() {
    never_more_than_the_limit(proxied, async |rig| {
        for _ in 0..30 {
            rig.proxy.cut();
            tokio::time::sleep(millis(35)).await;
        }
    });
}

#[test]
fn replies_that_break_off_give_nothing_away() {
    never_more_than_the_limit(proxied, async |rig| {
        for bytes in [3000, 1000, 777, 501, 2222, 4001] {
            rig.proxy.cut_after(bytes);
            tokio::time::sleep(millis(150)).await;
        }
        rig.proxy.cut_after(None);
    });
}

#[test]
fn answers_that_come_late_give_nothing_away() {
    never_more_than_the_limit(proxied, async |rig| {
        // Some are late, then all are.
        for delay in [8, 9, 200, 7, 10, 50] {
            rig.proxy.set(Fault::Delay(millis(delay)));
            tokio::time::sleep(millis(150)).await;
            rig.proxy.set(Fault::None);
            tokio::time::sleep(millis(50)).await;
        }
    });
}

#[test]
fn answers_that_are_swallowed_give_nothing_away() {
    never_more_than_the_limit(proxied, async |rig| {
        for _ in 0..3 {
            rig.proxy.set(Fault::Drop);
            tokio::time::sleep(millis(60)).await;
            rig.proxy.set(Fault::None);
            tokio::time::sleep(millis(300)).await;
        }
    });
}

#[test]
fn questions_that_are_held_back_give_nothing_away() {
    never_more_than_the_limit(proxied, async |rig| {
        for _ in 0..3 {
            rig.proxy.set(Fault::Hang);
            tokio::time::sleep(millis(60)).await;
            rig.proxy.set(Fault::None);
            tokio::time::sleep(millis(300)).await;
        }
    });
}

#[test]
fn a_server_that_forgets_everything_gives_no_more_than_twice() {
    run(async {
        let rig = direct().await;
        let calls = calls(&rig, async |rig| {
            rig.server.kill();
            tokio::time::sleep(millis(100)).await;
            rig.server.restart();
        });
        let allowed = count(&calls.await, |seen| *seen == Seen::Allowed);
        println!("allowed {allowed:?}");
        assert!(allowed.iter().all(|&allowed| allowed <= 2 * LIMIT), "{allowed:?}");
    });
}

#[test]
fn scripts_that_are_forgotten_cost_nobody_anything() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let calls = calls(&rig, async |rig| {
            for _ in 0..200 {
                assert!(rig.server.command(&["SCRIPT", "FLUSH"]).is_ok());
                tokio::time::sleep(millis(5)).await;
            }
        });
        let calls = calls.await;
        let failed = calls.iter().find(|call| matches!(call.seen, Seen::Failed(_)));
        assert!(failed.is_none(), "{failed:?}");
        assert_eq!(count(&calls, |seen| *seen == Seen::Allowed), [LIMIT; 6]);
    });
}
