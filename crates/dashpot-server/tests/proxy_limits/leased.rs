//! Several proxies, one limit whose units are leased.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dashpot_testkit::process::until;
use dashpot_testkit::{RedisServer, on_all_threads};

use crate::backend::Backend;
use crate::proxy::Proxy;

const SOON: Duration = Duration::from_secs(30);

fn rules(redis: &RedisServer, limit: &str) -> String {
    let url = redis.url();
    format!(
        "[store]\nurl = '{url}'\ndeadline = '2s'\nlease = '16s'\non_error = 'deny'\n\
         [[rule]]\nname = 'all'\nlimits = ['{limit}']\nconsistency = 'leased'\n"
    )
}

fn fleet(backend: &Backend, redis: &RedisServer, limit: &str) -> [Proxy; 2] {
    let rules = rules(redis, limit);
    let proxies = [Proxy::by(backend, &rules), Proxy::by(backend, &rules)];
    for proxy in &proxies {
        let up = format!("dashpot_store_up{{server=\"{}\"}}", redis.address());
        proxy.await_metric(&up, 1.0);
        proxy.await_metric("dashpot_store_instances", 2.0);
    }
    proxies
}

/// What reaches the backend, with callers that go on until they are told so.
#[test]
fn no_more_than_the_limit_reaches_the_backend() {
    let (redis, backend) = (RedisServer::start(), Backend::start());
    let proxies = fleet(&backend, &redis, "1500/year");
    let passed = on_all_threads(4, |thread| {
        let mut caller = proxies[thread as usize % 2].caller();
        let mut count = [0, 0];
        while count[1] < 100 {
            let status = caller.get("/").status;
            assert!([200, 429, 503].contains(&status), "{status}");
            count[usize::from(status != 200)] += 1;
        }
        count[0]
    });
    let passed: usize = passed.iter().sum();
    assert!(passed <= 1500, "{passed}");
    assert_eq!(backend.count(), passed);
    assert!(proxies.iter().any(|one| one.metric("dashpot_store_lease_calls_total") > 0.0));
}

#[test]
fn a_proxy_that_is_stopped_gives_back_what_it_holds() {
    let (redis, backend) = (RedisServer::start(), Backend::start());
    let [mut ended, other] = fleet(&backend, &redis, "20000/year");
    let (over, passed) = (AtomicBool::new(false), AtomicUsize::new(0));
    on_all_threads(3, |thread| {
        if thread == 0 {
            until("units to be leased", SOON, || {
                (ended.metric("dashpot_store_leased_keys") == 1.0).then_some(())
            });
            over.store(true, Ordering::SeqCst);
            return;
        }
        let mut caller = ended.caller();
        while !over.load(Ordering::SeqCst) {
            assert_eq!(caller.get("/").status, 200);
            passed.fetch_add(1, Ordering::SeqCst);
        }
    });
    // At once, before the key is cold.
    ended.signal("TERM");
    assert_eq!(ended.end().code(), Some(0));
    let left = other.get("/").left();
    assert_eq!(left, 20_000 - passed.into_inner() as u64 - 1);
}
