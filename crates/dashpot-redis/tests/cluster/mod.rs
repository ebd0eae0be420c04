//! On a real cluster of six nodes: what every store owes its callers, and what slots that move and nodes
//! that die do to them.

mod failover;
mod managing;
mod moving;
mod spread;
mod together;

use std::time::Duration;

use dashpot_redis::RedisStore;
use dashpot_testkit::redis::slot;
use dashpot_testkit::{RedisCluster, conformance};

use crate::support::subject::{On, run};

/// Where it does not matter how long it takes.
const PATIENT: Duration = Duration::from_secs(10);

fn clustered() -> On<RedisCluster> {
    let cluster = RedisCluster::start();
    let builder = RedisStore::builder(cluster.url()).deadline(PATIENT).connect_timeout(PATIENT);
    On::new(cluster, builder)
}

conformance!(together: clustered(), run);

/// A cluster, and a store on it that is patient and repeats no denial.
async fn cluster_and_store(deadline: Duration) -> (RedisCluster, RedisStore) {
    let cluster = RedisCluster::start();
    let store = RedisStore::builder(cluster.url()).deadline(deadline);
    // Else it looks every second whether each node answers within that.
    let connect_timeout = if deadline == PATIENT { PATIENT } else { Duration::from_millis(250) };
    let store = store.connect_timeout(connect_timeout);
    let store = store.denial_memory(Duration::ZERO).start().unwrap();
    store.ready(Duration::from_secs(5)).await.unwrap();
    (cluster, store)
}

/// Callers whose keys are in slots that this is true for.
fn callers_in(wanted: impl Fn(u16) -> bool, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("caller-{number}"));
    names.filter(|name| wanted(slot(name.as_bytes()))).take(count).collect()
}
