//! Redis goes away while units are leased: they are spent, then each rule does as it says.

use std::thread;
use std::time::Duration;

use dashpot_testkit::RedisServer;

use super::{Crowd, Instance, NOTICED, SHORT, passes, rules, until_leased};
use crate::client::Answer;
use crate::service::until;

fn is_degraded(answer: &Answer) -> bool {
    answer.json()["degraded"] == true
}

fn leased(limit: &str, more: &str) -> String {
    format!("limits = ['{limit}']\nconsistency = 'leased'\n{more}")
}

/// What is asked after Redis is gone, and still granted as if it were there, was leased before.
#[test]
fn what_is_leased_is_spent_without_redis() {
    let redis = RedisServer::start();
    let fleet = Instance::fleet(1, &rules(&redis, SHORT, &leased("1000000/s", "")));
    until("units that outlast Redis", NOTICED, || {
        let crowd = Crowd::new();
        let spent = crowd.during(&fleet, || {
            until_leased(&fleet[0]);
            crowd.until_admitted(500);
            redis.kill();
            let answer = fleet[0].client().check(super::ASKED);
            passes(&answer)
        });
        redis.restart();
        until("the store", NOTICED, || (fleet[0].health()["up"] == true).then_some(()));
        spent.then_some(())
    });
}

/// Asks until the leased units are gone, and says what comes then.
fn without_redis(on_error: &str, then: impl Fn(&Instance, &mut dyn FnMut() -> Answer)) {
    let redis = RedisServer::start();
    let rule = leased("600/year", &format!("on_store_error = '{on_error}'"));
    let fleet = Instance::fleet(2, &rules(&redis, SHORT, &rule));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        crowd.until_admitted(100);
    });
    redis.kill();
    let mut client = fleet[0].client();
    until("the outage to be noticed", NOTICED, || {
        let answer = client.check(super::ASKED);
        crowd.count(passes(&answer));
        is_degraded(&answer).then_some(())
    });
    crowd.is_within(600, 0);
    then(&fleet[0], &mut || client.check(super::ASKED));
    redis.restart();
    until("it to be used again", NOTICED, || {
        let passed = passes(&client.check(super::ASKED));
        crowd.count(passed);
        passed.then_some(())
    });
    // It came back empty, so all of it may be granted again: once.
    crowd.during(&fleet, || crowd.until_denied(100));
    crowd.is_within(2 * 600, 0);
}

#[test]
fn allow_lets_pass_when_the_leased_is_spent() {
    without_redis("allow", |_, ask| {
        for _ in 0..700 {
            let answer = ask();
            assert!(answer.allowed() && is_degraded(&answer), "{answer:?}");
        }
    });
}

#[test]
fn deny_refuses_when_the_leased_is_spent() {
    without_redis("deny", |instance, ask| {
        for _ in 0..50 {
            let answer = ask();
            assert_eq!(answer.status, 503, "{answer:?}");
            assert_eq!(answer.json()["reason"], "unavailable");
        }
        assert!(instance.service.metric(r#"dashpot_rule_degraded_total{rule="all"}"#) >= 50.0);
    });
}

#[test]
fn local_grants_its_part_when_the_leased_is_spent() {
    without_redis("local", |_, ask| {
        // Of 600, each of two has 300, the one that told of the outage among them.
        let granted = (0..400).filter(|_| {
            let answer = ask();
            assert!(is_degraded(&answer), "{answer:?}");
            answer.allowed()
        });
        let granted = granted.count();
        assert!((299..=300).contains(&granted), "{granted}");
    });
}

/// One that hangs forgets nothing: what is granted before, meanwhile and after comes to the limit.
#[test]
fn a_redis_that_hangs_makes_nobody_grant_twice() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let rule = leased("3000/year", &format!("algorithm = '{algorithm}'"));
        let fleet = Instance::fleet(3, &rules(&redis, SHORT, &rule));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            fleet.iter().for_each(until_leased);
            // Shorter than a lease, and longer.
            for pause in [300, 2000, 100] {
                redis.hang();
                thread::sleep(Duration::from_millis(pause));
                redis.resume();
                let up = |one: &Instance| one.health()["up"] == true;
                until("the store", NOTICED, || fleet.iter().all(up).then_some(()));
            }
            thread::sleep(Duration::from_millis(500));
        });
        crowd.is_within(3000, 0);
    }
}

/// By what the rate brings, over an outage that is longer than the lease.
#[test]
fn a_rate_is_kept_over_a_redis_that_hangs() {
    let redis = RedisServer::start();
    let fleet = Instance::fleet(3, &rules(&redis, SHORT, &leased("500/s burst 400", "")));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        redis.hang();
        thread::sleep(Duration::from_secs(2));
        redis.resume();
        crowd.until_admitted(400);
    });
    crowd.is_within(400, 500);
}
