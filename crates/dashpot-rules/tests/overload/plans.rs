//! What a factor does to limits: every one is lower, and what was used stays used.

use std::time::Duration;

use dashpot_rules::Facts;

use super::{SECOND, World, at};

fn adaptive(rest: &str) -> String {
    format!("[[rule]]\nname = 'api'\nadaptive = {{ cpu = 'off' }}\n{rest}\n")
}

fn world(rest: &str) -> World {
    World::new(&adaptive(rest))
}

fn limits(world: &World, request: &Facts) -> Vec<(String, u64)> {
    let plan = world.rules.select(request).plan(request);
    plan.checks().map(|check| (check.policy.name().to_owned(), check.policy.limit())).collect()
}

const EACH: [&str; 6] = [
    "limits = '100/h'",
    "limits = '100/h'\nalgorithm = 'leaky-bucket'",
    "limits = '100/h'\nalgorithm = 'fixed-window'",
    "limits = '100/h'\nalgorithm = 'sliding-log'",
    "limits = '100/h'\nalgorithm = 'sliding-window'",
    "limits = '100 concurrent'",
];

#[test]
fn every_limit_is_lower_by_it() {
    for rest in EACH {
        let world = world(rest);
        world.suffer(72);
        assert_eq!(limits(&world, &Facts::new()), [("api".to_owned(), 72)], "{rest}");
        assert_eq!(world.passes(&Facts::new()), 72, "{rest}");
    }
    let world = world("limits = ['10/s burst 1000', '5000/day', '30 concurrent']");
    world.suffer(50);
    let told: Vec<_> = limits(&world, &Facts::new()).into_iter().map(|(_, limit)| limit).collect();
    assert_eq!(told, [500, 2500, 15]);
}

/// In whole percents, rounded down: 72.9 % of a thousand are 720, and 90 % of 15 are 13.
#[test]
fn it_is_lower_in_whole_percents() {
    let world = world("limits = ['1000/h', '15/day']");
    world.suffer(90);
    let now = || limits(&world, &Facts::new()).into_iter().map(|(_, n)| n).collect::<Vec<_>>();
    assert_eq!(now(), [900, 13]);
    world.suffer(72);
    assert_eq!(now(), [720, 10]);
}

#[test]
fn one_is_always_left_and_nothing_stays_nothing() {
    for rest in EACH {
        let floor = "{ cpu = 'off', floor = '1%' }";
        let world =
            World::new(&adaptive(&rest.replace("100", "3")).replace("{ cpu = 'off' }", floor));
        world.suffer(1);
        assert_eq!(world.passes(&Facts::new()), 1, "{rest}");
        let none = self::world(&rest.replace("100", "0"));
        none.suffer(50);
        assert_eq!(none.passes(&Facts::new()), 0, "{rest}");
    }
    let world = world("limits = 'unlimited'");
    world.suffer(50);
    assert_eq!(world.passes(&Facts::new()), 2000);
}

#[test]
fn a_bucket_fills_more_slowly_and_waits_are_told_so() {
    for algorithm in ["token-bucket", "leaky-bucket"] {
        let world = world(&format!("limits = '10/min'\nalgorithm = '{algorithm}'"));
        world.suffer(50);
        assert_eq!(world.passes(&Facts::new()), 5);
        let denied = world.ask(&Facts::new()).unwrap_err();
        assert_eq!(denied[0].retry_after, Some(SECOND * 12), "{algorithm}");
        world.clock.advance(SECOND * 12 - Duration::from_nanos(1));
        assert!(world.ask(&Facts::new()).is_err());
        world.clock.advance(Duration::from_nanos(1));
        assert!(world.ask(&Facts::new()).is_ok());
        // Another factor is another wait.
        world.recover();
        while world.ask(&Facts::new()).is_ok() {}
        let denied = world.ask(&Facts::new()).unwrap_err();
        assert!(denied[0].retry_after.unwrap() <= SECOND * 6, "{algorithm}: {denied:?}");
    }
}

/// Time stands nearly still: what was used is not given out again.
#[test]
fn what_was_used_stays_used_in_either_direction() {
    for (rest, lower, whole) in [
        // Of a window so many units are used.
        ("limits = '100/day'\nalgorithm = 'fixed-window'", 10, 50),
        ("limits = '100/day'\nalgorithm = 'sliding-log'", 10, 50),
        ("limits = '100/day'\nalgorithm = 'sliding-window'", 10, 50),
        ("limits = '100 concurrent'", 10, 50),
        // Of a bucket so much of its time is: two fifths, then all.
        ("limits = '100/year'", 30, 0),
        ("limits = '100/year'\nalgorithm = 'leaky-bucket'", 30, 0),
    ] {
        let world = world(rest);
        (0..40).for_each(|_| assert!(world.ask(&Facts::new()).is_ok()));
        world.suffer(50);
        assert_eq!(world.passes(&Facts::new()), lower, "{rest}");
        world.recover();
        assert_eq!(world.passes(&Facts::new()), whole, "{rest}");
    }
}

#[test]
fn the_limit_is_told_as_it_is() {
    let world = world("limits = '100/h'\nalgorithm = 'fixed-window'");
    let asked = |world: &World| {
        let told = world.ask(&Facts::new()).unwrap();
        (told[0].limit, told[0].remaining)
    };
    assert_eq!(asked(&world), (100, 99));
    world.suffer(81);
    assert_eq!(asked(&world), (81, 79));
    world.recover();
    assert_eq!(asked(&world), (100, 97));
}

#[test]
fn a_cost_above_the_lowered_limit_is_denied_without_a_wait() {
    for rest in &EACH[..5] {
        let world = world(&format!("{rest}\ncost = 60"));
        world.suffer(50);
        let denied = world.ask(&Facts::new()).unwrap_err();
        assert_eq!(denied[0].retry_after, None, "{rest}");
        world.recover();
        assert!(world.ask(&Facts::new()).is_ok(), "{rest}: nothing was taken");
    }
}

#[test]
fn tiers_and_weights_are_lower_too() {
    let world = World::new(&format!(
        "[identity]\ndefault_tier = 'free'\n\
         [[priority]]\nname = 'pay'\nmatch.path = '/pay'\nweight = 3\n{}",
        adaptive("by = 'user'\ntiers.free = ['10/min', '100/day']\ntiers.pro = '50/min'")
    ));
    world.suffer(50);
    let of = |path: &str, tier: &str| limits(&world, &at(path).user("alice").tier(tier));
    let named = |name: &str, limit: u64| (name.to_owned(), limit);
    assert_eq!(of("/", "free"), [named("api-min", 5), named("api-day", 50)]);
    assert_eq!(of("/", "pro"), [named("api-min", 25)]);
    assert_eq!(of("/pay", "pro"), [named("api-min@pay", 75)]);
}

#[test]
fn rules_that_do_not_adapt_stay_as_they_are() {
    let world = World::new(&format!(
        "{}[[rule]]\nname = 'other'\nlimits = '100/min'\n",
        adaptive("limits = '100/min'")
    ));
    world.suffer(50);
    let expected = [("api".to_owned(), 50), ("other".to_owned(), 100)];
    assert_eq!(limits(&world, &Facts::new()), expected);
}

#[test]
fn a_shadow_counts_by_the_lower_limit() {
    let world = world("limits = '100/h'\nshadow = true");
    world.suffer(50);
    (0..60).for_each(|_| assert!(world.ask(&Facts::new()).is_ok()));
    assert_eq!(world.rule("api").tally().would_have_denied(), 10);
}

#[test]
fn a_queue_that_is_lower_delays_longer() {
    let world = world("limits = '1/s'\nalgorithm = 'leaky-bucket'\nqueue = 9");
    let delays = || {
        let request = Facts::new();
        let plan = world.rules.select(&request).plan(&request);
        let ask = || {
            let ruling = dashpot_testkit::block_on(plan.decide(&world.store, &world.store));
            ruling.refusal().is_none().then(|| ruling.decision().unwrap().delay())
        };
        std::iter::from_fn(ask).take(20).collect::<Vec<_>>()
    };
    world.suffer(50);
    // One at once and those in the queue, two seconds apart.
    let told = delays();
    assert_eq!(told[..3], [Duration::ZERO, SECOND * 2, SECOND * 4]);
    assert_eq!(told.len(), 5, "half of ten: {told:?}");
}
