//! What a refusal says is enough to wait.

use std::time::{Duration, Instant};

use dashpot::{Check, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{LONG, each, instances, leased};

/// Asks until it is refused, and says how long to wait.
async fn refused(store: &RedisStore, policy: &Policy, cost: u64) -> Duration {
    let start = Instant::now();
    loop {
        let decision = store.decide(&[Check::new(policy, "hot").cost(cost)]).await.unwrap();
        if !decision.is_allowed() {
            let wait = decision.retry_after().expect("it is not for ever");
            assert!(wait <= Duration::from_secs(2), "{policy}: {wait:?}");
            return wait;
        }
        assert!(start.elapsed() < Duration::from_secs(8), "{policy} is never used up");
    }
}

async fn waiting_is_enough(store: &RedisStore, policy: &Policy, costs: &[u64]) {
    for cost in costs {
        let wait = refused(store, policy, *cost).await;
        tokio::time::sleep(wait).await;
        let check = Check::new(policy, "hot").cost(*cost);
        let decision = store.decide(&[check]).await.unwrap();
        assert!(decision.is_allowed(), "{policy}: {cost} after {wait:?}: {decision:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_alone_passes_after_the_wait() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let [store] = instances(&server, LONG).await;
        let policy = leased(algorithm, 400, Window::SECOND);
        waiting_is_enough(&store, &policy, &[1, 1, 10, 1, 25]).await;
    })
    .await;
}

/// Another instance is there, and is never asked.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_the_key_to_itself_passes_after_the_wait_whoever_else_there_is() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let [one, _two] = instances(&server, LONG).await;
        let policy = leased(algorithm, 400, Window::SECOND);
        waiting_is_enough(&one, &policy, &[1, 5].repeat(6)).await;
    })
    .await;
}
