//! Another definition of the same policy while units are out.

use dashpot::{Algorithm, Consistency, Policy, Quota, Window};
use dashpot_testkit::RedisServer;

use super::bound::within_bound;
use super::callers::{Callers, together};
use super::common::{LONG, SHORT, drain, each, heat, instances, left, policy, sleep, takes};

fn of(algorithm: Algorithm, count: u64, window: Window, consistency: Consistency) -> Policy {
    policy("same", algorithm, Quota::new(count, window), consistency)
}

/// One instance has the old rules and another the new ones: never more than the larger of both grants.
#[tokio::test(flavor = "multi_thread")]
async fn two_counts_at_once_grant_no_more_than_the_larger() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = instances::<4>(&server, SHORT).await;
        let [small, large] =
            [500, 1000].map(|count| of(algorithm, count, Window::SECOND, Consistency::Leased));
        let callers = [
            Callers::start(&stores[..2], &small, "hot"),
            Callers::start(&stores[2..], &large, "hot"),
        ];
        sleep(1500).await;
        let [of_small, of_large] = callers.map(Callers::stop::<2>);
        let said = [of_small.await, of_large.await];
        let passed = said.each_ref().map(|said| together(said));
        eprintln!("{algorithm:?}: {} and {}", passed[0].len(), passed[1].len());
        within_bound(&large, &passed.concat(), 0);
        within_bound(&small, &passed[0], 0);
    })
    .await;
}

/// One instance changes its mind again and again while it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn counts_that_go_up_and_down_grant_no_more_than_the_largest() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let [one, two] = instances(&server, LONG).await;
        let counts = [1000, 400, 2000, 30, 1500];
        let policies = counts.map(|count| of(algorithm, count, Window::WEEK, Consistency::Leased));
        let mut taken = 0;
        for (number, policy) in policies.iter().enumerate() {
            for _ in 0..60 {
                taken += u64::from(takes(&one, policy, "hot", 1).await);
                let other = &policies[(number + 1) % policies.len()];
                taken += u64::from(takes(&two, other, "hot", 1).await);
            }
            sleep(20).await;
        }
        one.release().await;
        two.release().await;
        let largest = &policies[2];
        assert_eq!(left(&one, largest, "hot").await, 2000 - taken, "{largest}: {taken}");
        taken += drain(&one, largest, "hot", 2000).await;
        assert_eq!(taken, 2000, "{largest}");
        assert_eq!(drain(&two, &policies[0], "hot", 9).await, 0, "{largest}");
    })
    .await;
}

/// What was leased under the larger count is not spent beyond the smaller one by those who hold it.
#[tokio::test(flavor = "multi_thread")]
async fn a_smaller_count_is_obeyed_by_who_holds_units_of_a_larger() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let [store] = instances(&server, LONG).await;
        let [small, large] =
            [40, 1000].map(|count| of(algorithm, count, Window::WEEK, Consistency::Leased));
        let taken = heat(&store, &large, "hot").await;
        let more = drain(&store, &small, "hot", 1000).await;
        assert!(more <= 40_u64.saturating_sub(taken), "{small}: {taken} and {more}");
    })
    .await;
}

/// Rules that say `exact` here and `leased` or `approximate` there share what was counted.
#[tokio::test(flavor = "multi_thread")]
async fn one_consistency_here_and_another_there_grant_no_more_than_one() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = instances::<2>(&server, SHORT).await;
        let [exact, leased] = [Consistency::Exact, Consistency::Leased]
            .map(|consistency| of(algorithm, 1000, Window::SECOND, consistency));
        let callers = [
            Callers::start(&stores[..1], &exact, "hot"),
            Callers::start(&stores[1..], &leased, "hot"),
        ];
        sleep(1200).await;
        let [of_exact, of_leased] = callers.map(Callers::stop::<1>);
        let passed = [together(&of_exact.await), together(&of_leased.await)];
        eprintln!("{algorithm:?}: {} and {}", passed[0].len(), passed[1].len());
        within_bound(&leased, &passed.concat(), 0);
    })
    .await;
}
