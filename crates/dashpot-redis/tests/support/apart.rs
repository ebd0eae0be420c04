//! What is promised about checks that no single call to a server can decide, wherever they are.

use std::time::Duration;

use dashpot::{Algorithm, Check, Key, KeyOperation, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::limit;

/// Checks of one call: each policy with its key.
pub(crate) type Pair<'a> = [(&'a Policy, &'a str); 2];

const ALL: u64 = 60;
const EACH: u64 = 10;
const USERS: usize = 8;

async fn remaining(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    let peek = store.manage(policy, Key::from(key), KeyOperation::Peek).await.unwrap();
    peek.statuses()[0].remaining()
}

async fn ask(store: &RedisStore, pair: Pair<'_>) -> bool {
    store.decide(&pair.map(|(policy, key)| Check::new(policy, key))).await.unwrap().is_allowed()
}

/// Everybody at once under a limit for all and one for each: nobody gets more than is theirs, and in the
/// end only what was admitted is charged, to the unit.
pub(crate) async fn nobody_pays_for_a_denial(store: &RedisStore, salt: &str) {
    for algorithm in Algorithm::ALL {
        let all = limit(&format!("{salt}-all"), algorithm, ALL, Window::DAY);
        let each = limit("each", algorithm, EACH, Window::DAY);
        let user = |number: usize| format!("{salt}-{number}");
        let mut tasks = Vec::new();
        for number in (0..USERS).flat_map(|number| [number; 5]) {
            let (store, all, each, user) = (store.clone(), all.clone(), each.clone(), user(number));
            tasks.push(tokio::spawn(async move {
                let mut admitted = 0;
                for _ in 0..4 {
                    let pair = [(&all, ""), (&each, user.as_str())];
                    admitted += u64::from(ask(&store, pair).await);
                }
                (number, admitted)
            }));
        }
        let mut admitted = [0; USERS];
        for task in tasks {
            let (number, count) = task.await.unwrap();
            admitted[number] += count;
        }
        let mut total = admitted.iter().sum::<u64>();
        assert!(total <= ALL, "{algorithm:?}: {total} of {ALL}");
        assert_eq!(remaining(store, &all, "").await, ALL - total, "{all} after {admitted:?}");
        for (number, count) in admitted.iter().enumerate() {
            assert!(*count <= EACH, "{algorithm:?}: {admitted:?}");
            // A bucket that was full may miss the few milliseconds that a decision took, not more.
            let mut left = remaining(store, &each, &user(number)).await;
            if each.rate().is_some() && left < EACH - count {
                tokio::time::sleep(Duration::from_millis(500)).await;
                left = remaining(store, &each, &user(number)).await;
            }
            assert_eq!(left, EACH - count, "{each} for {number} of {admitted:?}");
        }
        // What is left is there for those who come one by one, to the last.
        for number in 0..USERS {
            while ask(store, [(&all, ""), (&each, &user(number))]).await {
                total += 1;
            }
        }
        assert_eq!(total, ALL, "{algorithm:?}");
        assert_eq!(remaining(store, &all, "").await, 0, "{all}");
    }
}

/// Somebody who is denied by what all share, again and again and many at once, keeps what they have left to
/// the last unit.
pub(crate) async fn a_crowd_of_denials_costs_nothing(store: &RedisStore, user: &str) {
    for algorithm in Algorithm::ALL {
        let all = limit(&format!("{user}-all"), algorithm, 1, Window::DAY);
        let each = limit("crowd", algorithm, EACH, Window::DAY);
        let start = store.decide(&[Check::new(&all, "")]).await.unwrap();
        assert!(start.is_allowed());
        let start = store.decide(&[Check::new(&each, user).cost(4)]).await.unwrap();
        assert!(start.is_allowed());
        let tasks = [(); 5].map(|()| {
            let (store, all, each, user) =
                (store.clone(), all.clone(), each.clone(), user.to_owned());
            tokio::spawn(async move {
                for _ in 0..20 {
                    assert!(!ask(&store, [(&all, ""), (&each, &user)]).await);
                }
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(remaining(store, &each, user).await, EACH - 4, "{each}");
        let rest = store.decide(&[Check::new(&each, user).cost(6)]).await.unwrap();
        assert!(rest.is_allowed(), "{rest:?}");
    }
}

/// A denial charges neither side, and says who denied: one, the other, or both.
pub(crate) async fn every_denier_is_named(store: &RedisStore, [one, two]: [&str; 2]) {
    for algorithm in Algorithm::ALL {
        let first = limit("first", algorithm, 3, Window::DAY);
        let second = limit("second", algorithm, 3, Window::DAY);
        for (take, expected) in [([0, 3], vec!["second"]), ([3, 0], vec!["first", "second"])] {
            for (policy, key, cost) in [(&first, one, take[0]), (&second, two, take[1])] {
                let taken = store.decide(&[Check::new(policy, key).cost(cost)]).await.unwrap();
                assert!(taken.is_allowed(), "{policy}");
            }
            for _ in 0..3 {
                let checks = [Check::new(&first, one), Check::new(&second, two)];
                let denial = store.decide(&checks).await.unwrap();
                let deniers: Vec<_> = denial.denied().map(|by| by.policy().name()).collect();
                assert_eq!(deniers, expected, "{algorithm:?}");
            }
            let left = 3 - take[0];
            assert_eq!(remaining(store, &first, one).await, left, "{first}");
        }
        assert_eq!(remaining(store, &second, two).await, 0, "{second}");
    }
}

/// What was taken apart is settled apart: for nothing, it all comes back on both sides.
pub(crate) async fn what_is_not_used_comes_back(store: &RedisStore, [one, two]: [&str; 2]) {
    for algorithm in Algorithm::ALL {
        let first = limit("first", algorithm, 5, Window::DAY);
        let second = limit("second", algorithm, 9, Window::DAY);
        for _ in 0..3 {
            let checks = [Check::new(&first, one).cost(4), Check::new(&second, two).cost(7)];
            let decision = store.decide(&checks).await.unwrap();
            assert!(decision.is_allowed(), "{algorithm:?}: {decision:?}");
            assert_eq!(decision.statuses()[0].remaining(), 1, "{first}");
            assert_eq!(decision.statuses()[1].remaining(), 2, "{second}");
            for check in checks {
                let reservation = check.reservation(&decision).expect("it was allowed");
                store.settle(&reservation, 0.into()).await.unwrap();
            }
            assert_eq!(remaining(store, &first, one).await, 5, "{first}");
            assert_eq!(remaining(store, &second, two).await, 9, "{second}");
        }
    }
}
