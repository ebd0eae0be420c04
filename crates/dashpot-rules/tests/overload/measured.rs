//! What is measured: how requests end and how long they take, when there are twenty of them.

use std::time::Duration;

use dashpot::{Percent, Vitals};

use super::{HOUR, SECOND, World, healthy};

const MS: Duration = Duration::from_millis(1);

fn world(settings: &str) -> World {
    World::new(&format!(
        "[[rule]]\nname = 'api'\nlimits = '100/s'\nadaptive = {{ cpu = 'off', {settings} }}\n"
    ))
}

/// So many requests that are answered at once, of which some fail.
fn answer(world: &World, count: usize, failures: usize) {
    for n in 0..count {
        let began = world.adaptive().begin();
        world.adaptive().answered(began, n >= failures);
    }
}

/// So many requests that begin together and take so long.
fn take(world: &World, count: usize, time: Duration) {
    let began = world.adaptive().begin();
    world.clock.advance(time);
    for _ in 0..count {
        world.adaptive().answered(began, true);
    }
}

fn tick(world: &World) -> u8 {
    world.clock.advance(SECOND);
    world.adaptive().percent()
}

#[test]
fn failures_count_when_there_are_twenty_requests() {
    let world = world("");
    answer(&world, 19, 19);
    assert_eq!(tick(&world), 100, "nineteen say nothing yet");
    answer(&world, 1, 0);
    assert_eq!(tick(&world), 90, "but they were not forgotten");
    assert_eq!(tick(&world), 99, "they are judged once");
}

#[test]
fn a_large_number_counts_by_its_share() {
    for (failures, percent) in [(0, 89), (1, 89), (2, 81), (10, 81), (11, 72), (200, 72)] {
        let world = world("");
        world.suffer(81);
        world.adaptive().push(healthy(), MS);
        answer(&world, 200, failures);
        assert_eq!(tick(&world), percent, "{failures} of 200");
    }
}

#[test]
fn those_who_wait_longer_than_the_latency_are_slow() {
    for (late, percent) in [(0, 89), (1, 81), (2, 81), (3, 72)] {
        let world = world("latency = '100ms'");
        world.suffer(81);
        world.adaptive().push(healthy(), MS);
        take(&world, 20 - late, MS * 100);
        take(&world, late, MS * 101);
        assert_eq!(tick(&world), percent, "{late} of 20");
    }
}

#[test]
fn how_long_it_takes_does_not_matter_without_a_latency() {
    let world = world("floor = '50%'");
    take(&world, 50, SECOND * 30);
    assert_eq!(tick(&world), 100);
}

/// Who goes away after a long time has waited for it; who goes away at once says nothing.
#[test]
fn who_gives_up_tells_if_it_had_waited_for_too_long() {
    let found = |after: Duration| {
        let world = world("latency = '100ms'");
        let began = world.adaptive().begin();
        world.clock.advance(after);
        (0..40).for_each(|_| world.adaptive().abandoned(began));
        tick(&world)
    };
    assert_eq!(found(MS * 101), 90);
    assert_eq!(found(MS * 10), 100);
}

/// Nobody can shrink everybody's limits by hanging up.
#[test]
fn who_gives_up_early_is_no_failure() {
    let world = world("");
    answer(&world, 20, 0);
    for _ in 0..100 {
        let began = world.adaptive().begin();
        world.adaptive().abandoned(began);
    }
    assert_eq!(tick(&world), 100);
}

/// All hang for long and then fail, and nobody asks meanwhile: that counts when it is found.
#[test]
fn what_comes_late_is_not_judged_as_if_it_had_come_early() {
    let world = world("");
    let began = world.adaptive().begin();
    world.clock.advance(SECOND * 10);
    (0..40).for_each(|_| world.adaptive().answered(began, false));
    world.clock.advance(SECOND);
    assert_eq!(world.adaptive().percent(), 90);
}

/// One round of trouble is one step, however much time passes until somebody looks.
#[test]
fn what_was_measured_once_counts_once() {
    let world = world("");
    answer(&world, 40, 40);
    world.clock.advance(SECOND * 3);
    assert_eq!(world.adaptive().percent(), 100, "one step down and two up");
}

#[test]
fn what_is_told_takes_the_place_of_what_is_measured() {
    let world = world("");
    world.adaptive().push(healthy(), HOUR);
    answer(&world, 100, 100);
    assert_eq!(tick(&world), 100);
    // What is not told, or not any more, is measured.
    world.adaptive().push(healthy(), MS);
    world.adaptive().push(Vitals { slow: Some(Percent::new(0)), ..Vitals::default() }, HOUR);
    answer(&world, 100, 100);
    assert_eq!(tick(&world), 90);
    assert_eq!(world.adaptive().vitals().errors, Some(Percent::new(100)));
}

#[test]
fn errors_that_are_off_are_not_counted() {
    let world = world("errors = 'off', latency = '1s'");
    answer(&world, 100, 100);
    assert_eq!(tick(&world), 100);
}
