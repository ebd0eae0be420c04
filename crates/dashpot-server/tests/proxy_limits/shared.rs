//! Several proxies, one limit: on Redis, to the unit; and what becomes of it when Redis is gone.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;
use dashpot_testkit::{RedisServer, on_all_threads};

use crate::backend::Backend;
use crate::pace::{assert_paced, await_sum, send, wait_in_line};
use crate::proxy::Proxy;

const SOON: Duration = Duration::from_secs(20);

/// Tests share the machine: an answer may take its time.
fn store(redis: &RedisServer) -> String {
    format!("[store]\nurl = '{}'\ndeadline = '5s'\n", redis.url())
}

fn await_up(proxy: &Proxy, redis: &RedisServer, up: bool) {
    let series = format!("dashpot_store_up{{server=\"{}\"}}", redis.address());
    proxy.await_metric(&series, f64::from(u8::from(up)));
}

#[test]
fn two_proxies_share_a_limit_to_the_unit() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let rules = store(&redis) + "[[rule]]\nname = 'all'\nlimits = ['37/day']\n";
    let proxies = [Proxy::by(&backend, &rules), Proxy::by(&backend, &rules)];
    for proxy in &proxies {
        await_up(proxy, &redis, true);
    }
    let passed = on_all_threads(4, |thread| {
        let statuses = proxies[thread as usize % 2].statuses("/", &[], 20);
        assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
        statuses.iter().filter(|status| **status == 200).count()
    });
    assert_eq!(passed.iter().sum::<usize>(), 37, "{passed:?}");
    assert_eq!(backend.count(), 37);
}

#[test]
fn a_flag_says_where_beside_one_line() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let url = redis.url();
    let flags = ["--limit", "3/day", "--by", "ip", "--store", &url];
    let proxies = [Proxy::start(&backend, &flags), Proxy::start(&backend, &flags)];
    assert!(proxies[0].stdout().contains(", 1 rule"), "{}", proxies[0].stdout());
    assert!(!proxies[0].stdout().contains("in memory"), "{}", proxies[0].stdout());
    // Here nobody says how long an answer may take, so some may be decided without one.
    let mut passed = 0;
    until("the limit to be used up", SOON, || {
        let [one, other] = [&proxies[0], &proxies[1]].map(|proxy| proxy.get("/").status);
        passed += [one, other].iter().filter(|status| **status == 200).count();
        (one == 429 && other == 429).then_some(())
    });
    let alone = |proxy: &Proxy| proxy.metric(r#"dashpot_rule_degraded_total{rule="limit"}"#);
    let alone = (alone(&proxies[0]) + alone(&proxies[1])) as usize;
    assert!((1..=3 + alone).contains(&passed), "{passed}, of them {alone} alone");
    assert!(!redis.keys().is_empty());
}

#[test]
fn without_redis_each_rule_says_what_happens() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let rule = |name: &str, more: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nmatch = {{ path = '/{name}' }}\nlimits = ['5/day']\n{more}\n"
        )
    };
    let rules = store(&redis)
        + &rule("allow", "on_store_error = 'allow'")
        + &rule("deny", "on_store_error = 'deny'")
        + &rule("local", "on_store_error = 'local'");
    let proxy = Proxy::by(&backend, &rules);
    await_up(&proxy, &redis, true);
    assert_eq!(proxy.statuses("/deny", &[], 2), [200, 200]);
    redis.kill();
    await_up(&proxy, &redis, false);
    backend.forget();
    assert_eq!(proxy.statuses("/allow", &[], 10), [200; 10]);
    let denied = proxy.get("/deny");
    assert_eq!(denied.status, 503);
    assert!(denied.retry_after() >= 1);
    let local = proxy.statuses("/local", &[], 10);
    assert_eq!(local.iter().filter(|status| **status == 200).count(), 5, "{local:?}");
    assert_eq!(backend.count(), 15);
    assert!(proxy.metric(r#"dashpot_rule_degraded_total{rule="allow"}"#) >= 10.0);

    redis.restart();
    await_up(&proxy, &redis, true);
    until("it to be asked again", SOON, || (proxy.get("/deny").status == 200).then_some(()));
}

/// One line for both, though nobody sees all of it.
#[test]
fn two_proxies_share_a_queue() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let rules = store(&redis)
        + "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 8\n";
    let proxies = [Proxy::by(&backend, &rules), Proxy::by(&backend, &rules)];
    for proxy in &proxies {
        await_up(proxy, &redis, true);
    }
    let sent = Instant::now();
    let mut callers = Vec::new();
    for nth in 0..6 {
        callers.push(send(&proxies[nth % 2], &format!("/{nth}")));
        await_sum(&[&proxies[0], &proxies[1]], &backend, nth + 1);
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_paced(&backend.seen(), sent, Duration::from_millis(500), 0);
    assert_eq!(backend.paths(), ["/0", "/1", "/2", "/3", "/4", "/5"]);
}

/// Where instances share the line, those of one process close up.
#[test]
fn those_who_wait_in_one_process_close_up_on_redis() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let rules = store(&redis)
        + "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 4\n";
    let proxy = Proxy::by(&backend, &rules);
    await_up(&proxy, &redis, true);
    let sent = Instant::now();
    let mut callers = wait_in_line(&proxy, &backend, 4);
    drop(callers.remove(1));
    proxy.await_queued(2);
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(backend.paths(), ["/0", "/2", "/3"]);
    assert_paced(&backend.seen(), sent, Duration::from_millis(500), 0);
}

/// One that hangs is waited for, but no longer than was said, and not again and again.
#[test]
fn a_redis_that_hangs_holds_nobody_up_for_long() {
    let redis = RedisServer::start();
    let backend = Backend::start();
    let rules = store(&redis).replace("5s", "200ms")
        + "[[rule]]\nname = 'all'\nlimits = ['1000/day']\non_store_error = 'allow'\n";
    let proxy = Proxy::by(&backend, &rules);
    await_up(&proxy, &redis, true);
    redis.hang();
    let begun = Instant::now();
    assert_eq!(proxy.statuses("/", &[], 30), [200; 30]);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    redis.resume();
    await_up(&proxy, &redis, true);
}

#[test]
fn two_proxies_share_permits() {
    let redis = RedisServer::start();
    let backend = Backend::answering(|seen, stream| {
        if seen.path() == "/" {
            return std::io::Write::write_all(stream, &crate::backend::answer("200 OK", "ok"));
        }
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let rules = store(&redis) + "[[rule]]\nname = 'two'\nlimits = ['2 concurrent']\n";
    let proxies = [Proxy::by(&backend, &rules), Proxy::by(&backend, &rules)];
    for proxy in &proxies {
        await_up(proxy, &redis, true);
    }
    let held = [send(&proxies[0], "/held"), send(&proxies[1], "/held")];
    backend.await_count(2);
    assert_eq!([proxies[0].get("/").status, proxies[1].get("/").status], [429, 429]);
    drop(held);
    for proxy in &proxies {
        until("the permits to be given back", SOON, || {
            (proxy.get("/").status == 200).then_some(())
        });
    }
}
