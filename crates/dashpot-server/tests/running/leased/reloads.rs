//! Rules that change while units are leased.

use std::thread;
use std::time::Duration;

use dashpot_testkit::RedisServer;

use super::{Crowd, Instance, NOTICED, PATIENT, rules, until_leased};
use crate::service::until;

fn rule(count: u64, algorithm: &str, consistency: &str) -> String {
    format!("limits = ['{count}/year']\nalgorithm = '{algorithm}'\nconsistency = '{consistency}'")
}

fn reload(instance: &Instance, rules: &str) {
    instance.home.replace("rules.toml", rules);
    let answer = instance.client().post("/v1/rules/reload", "");
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// How many sets of rules there have been.
fn generation(instance: &Instance) -> f64 {
    instance.service.metric("dashpot_rules_generation")
}

/// One after the other, so that for a while each keeps to them in its own way.
#[test]
fn whatever_the_rules_say_about_leases_no_more_is_granted() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let with = |word: &str| rules(&redis, PATIENT, &rule(20_000, algorithm, word));
        let fleet = Instance::fleet(2, &with("exact"));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            for word in ["leased", "exact", "leased", "exact", "leased"] {
                for instance in &fleet {
                    reload(instance, &with(word));
                    thread::sleep(Duration::from_millis(150));
                }
                if word == "leased" {
                    fleet.iter().for_each(until_leased);
                }
            }
        });
        crowd.is_within(20_000, 0);
        // Nothing is lost, either.
        let left = 20_000 - crowd.admitted();
        until("all to be given back", NOTICED, || {
            let told: Vec<_> = fleet.iter().map(Instance::left_when_cold).collect();
            assert!(told.iter().all(|told| *told <= left), "{algorithm}: {told:?} of {left}");
            (told == [left; 2]).then_some(())
        });
    }
}

#[test]
fn what_was_leased_comes_back_when_rules_are_exact_again() {
    let redis = RedisServer::start();
    let with = |word: &str| rules(&redis, PATIENT, &rule(20_000, "token-bucket", word));
    let fleet = Instance::fleet(1, &with("leased"));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        until_leased(&fleet[0]);
        crowd.until_admitted(200);
        reload(&fleet[0], &with("exact"));
        // Though it is asked about as often as before.
        until("leases to end", NOTICED, || (fleet[0].leased_keys() == 0).then_some(()));
    });
    let left = 20_000 - crowd.admitted();
    until("all to be given back", NOTICED, || (fleet[0].left_when_cold() == left).then_some(()));
}

/// Never more than the larger of two limits, whichever is in use.
#[test]
fn other_counts_go_on_with_what_was_used() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let with = |count: u64| rules(&redis, PATIENT, &rule(count, algorithm, "leased"));
        let fleet = Instance::fleet(2, &with(1000));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            for count in [3000, 1000, 2000, 3000, 2000] {
                for instance in &fleet {
                    reload(instance, &with(count));
                    thread::sleep(Duration::from_millis(100));
                }
            }
            crowd.until_denied(200);
        });
        crowd.is_within(3000, 0);
    }
}

/// Down to less than what is used: nobody spends what was leased of the larger for long.
#[test]
fn less_than_was_used_is_nothing() {
    let redis = RedisServer::start();
    let with = |count: u64| rules(&redis, PATIENT, &rule(count, "token-bucket", "leased"));
    let fleet = Instance::fleet(2, &with(40_000));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        crowd.until_admitted(500);
        fleet.iter().for_each(|instance| reload(instance, &with(300)));
        until("nothing to be left", NOTICED, || {
            let before = crowd.admitted();
            crowd.until_denied(100);
            (crowd.admitted() == before).then_some(())
        });
    });
    crowd.is_within(40_000, 0);
}

#[test]
fn a_file_that_changes_and_a_signal_do_the_same() {
    let redis = RedisServer::start();
    let with = |count: u64, word: &str| rules(&redis, PATIENT, &rule(count, "token-bucket", word));
    let fleet = Instance::fleet(2, &with(2000, "exact"));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(|one| one.home.replace("rules.toml", &with(2500, "leased")));
        fleet[0].service.signal("HUP");
        for one in &fleet {
            until("the new rules", NOTICED, || (generation(one) >= 2.0).then_some(()));
        }
        fleet.iter().for_each(|one| one.home.replace("rules.toml", &with(2200, "exact")));
        fleet[1].service.signal("HUP");
        for one in &fleet {
            until("the new rules", NOTICED, || (generation(one) >= 3.0).then_some(()));
        }
        crowd.until_denied(100);
    });
    crowd.is_within(2500, 0);
}
