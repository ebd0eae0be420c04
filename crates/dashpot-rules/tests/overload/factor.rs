//! How a factor is found: by bands, steps and ticks, from what is told.

use std::time::Duration;

use dashpot::{Percent, Vitals};

use super::{HOUR, SECOND, World, between, healthy};

fn adaptive(settings: &str) -> World {
    World::new(&format!("[[rule]]\nname = 'api'\nlimits = '100/s'\nadaptive = {{ {settings} }}\n"))
}

/// The factor after each of so many seconds.
fn each_second(world: &World, seconds: usize) -> Vec<u8> {
    let second = |_| {
        world.clock.advance(SECOND);
        world.adaptive().percent()
    };
    (0..seconds).map(second).collect()
}

/// Where one tick leads from 81 %: down to 72, up to 89, or nowhere.
fn step(settings: &str, vitals: Vitals) -> u8 {
    let world = adaptive(settings);
    world.suffer(81);
    world.adaptive().push(vitals, HOUR);
    each_second(&world, 1)[0]
}

fn cpu(hundredths: u64) -> Vitals {
    Vitals { cpu: Some(Percent::of(hundredths, 10_000)), ..healthy() }
}

fn errors(hundredths: u64) -> Vitals {
    Vitals { errors: Some(Percent::of(hundredths, 10_000)), ..healthy() }
}

fn slow(hundredths: u64) -> Vitals {
    Vitals { slow: Some(Percent::of(hundredths, 10_000)), ..healthy() }
}

const DOWN: u8 = 72;
const UP: u8 = 89;
const SAME: u8 = 81;

#[test]
fn it_starts_whole_and_is_multiplied_every_tick() {
    let world = adaptive("");
    assert_eq!(world.adaptive().percent(), 100);
    world.adaptive().push(cpu(9500), HOUR);
    assert_eq!(world.adaptive().percent(), 100, "no tick has passed");
    world.clock.advance(Duration::from_millis(999));
    assert_eq!(world.adaptive().percent(), 100);
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(world.adaptive().percent(), 90);
    // In whole percents, though it is kept more exactly: 72.9, 65.61, 59.049.
    assert_eq!(each_second(&world, 8), [81, 72, 65, 59, 53, 50, 50, 50]);
    world.adaptive().push(healthy(), HOUR);
    // 55, 60.5, 66.55, 73.2, 80.5, 88.6, 97.4.
    assert_eq!(each_second(&world, 9), [55, 60, 66, 73, 80, 88, 97, 100, 100]);
}

#[test]
fn above_the_band_is_stressed_and_below_is_healthy() {
    for (vitals, expected) in [
        (cpu(8001), DOWN),
        (cpu(8000), SAME),
        (cpu(5000), SAME),
        (cpu(4999), UP),
        (errors(501), DOWN),
        (errors(500), SAME),
        (errors(100), SAME),
        (errors(99), UP),
    ] {
        assert_eq!(step("", vitals), expected, "{vitals:?}");
    }
    // As it is written.
    for (vitals, expected) in [(cpu(3001), DOWN), (cpu(3000), SAME), (cpu(1999), UP)] {
        assert_eq!(step("cpu = '20%..30%'", vitals), expected, "{vitals:?}");
    }
    for (vitals, expected) in [(errors(51), DOWN), (errors(50), SAME), (errors(10), SAME)] {
        assert_eq!(step("errors = '0.1%..0.5%'", vitals), expected, "{vitals:?}");
    }
}

#[test]
fn a_tenth_that_is_slow_is_stress_and_a_twentieth_is_not() {
    for (vitals, expected) in
        [(slow(1001), DOWN), (slow(1000), SAME), (slow(500), SAME), (slow(499), UP)]
    {
        assert_eq!(step("latency = '1s'", vitals), expected, "{vitals:?}");
    }
}

#[test]
fn how_many_are_slow_is_not_looked_at_without_a_latency() {
    assert_eq!(step("", slow(10_000)), UP);
}

#[test]
fn one_thing_is_enough_for_stress_and_all_are_needed_for_health() {
    let settings = "latency = '1s'";
    let bad = Some(Percent::new(95));
    for vitals in [
        Vitals { cpu: bad, ..healthy() },
        Vitals { errors: bad, ..healthy() },
        Vitals { slow: bad, ..healthy() },
    ] {
        assert_eq!(step(settings, vitals), DOWN, "{vitals:?}");
    }
    for vitals in [
        Vitals { cpu: between().cpu, ..healthy() },
        Vitals { errors: between().errors, ..healthy() },
        Vitals { slow: between().slow, ..healthy() },
    ] {
        assert_eq!(step(settings, vitals), SAME, "{vitals:?}");
    }
    assert_eq!(step(settings, healthy()), UP);
}

#[test]
fn what_is_off_is_not_looked_at() {
    assert_eq!(step("cpu = 'off'", cpu(9900)), UP);
    assert_eq!(step("cpu = 'off'", errors(9900)), DOWN);
    let world = adaptive("cpu = 'off', errors = 'off', latency = '1s'");
    world.adaptive().push(Vitals { slow: None, ..errors(9900) }, HOUR);
    assert_eq!(each_second(&world, 3), [100, 100, 100]);
}

#[test]
fn steps_floor_and_tick_are_as_they_are_written() {
    let world = adaptive(
        "cpu = '20%..80%', down = '50%', up = '120%', floor = '20%', tick = '100ms', errors = 'off'",
    );
    let each_tick = |count: usize| {
        let tick = |_| {
            world.clock.advance(Duration::from_millis(100));
            world.adaptive().percent()
        };
        (0..count).map(tick).collect::<Vec<_>>()
    };
    world.adaptive().push(cpu(9900), HOUR);
    assert_eq!(each_tick(4), [50, 25, 20, 20]);
    world.adaptive().push(cpu(0), HOUR);
    assert_eq!(each_tick(4), [24, 28, 34, 41]);
}

#[test]
fn what_is_told_counts_for_as_long_as_is_said() {
    let world = adaptive("cpu = 'off'");
    world.adaptive().push(errors(9000), Duration::from_millis(3500));
    // Then nothing is known, which is healthy.
    assert_eq!(each_second(&world, 6), [90, 81, 72, 80, 88, 97]);
    // What is told anew takes the place of what was told before, be it longer or shorter.
    world.adaptive().push(errors(9000), HOUR);
    world.adaptive().push(healthy(), Duration::from_millis(1500));
    assert_eq!(each_second(&world, 2), [100, 100]);
}

/// Nobody has to look for time to pass.
#[test]
fn ticks_at_which_nobody_looked_are_made_up_for() {
    let (watched, alone) = (adaptive("cpu = 'off'"), adaptive("cpu = 'off'"));
    for world in [&watched, &alone] {
        world.adaptive().push(errors(9000), Duration::from_millis(4500));
    }
    each_second(&watched, 6);
    alone.clock.advance(SECOND * 6);
    assert_eq!(watched.adaptive().percent(), 79, "four steps down and two up");
    assert_eq!(alone.adaptive().percent(), 79);
}

/// What is told now says nothing about the time before.
#[test]
fn what_is_told_counts_from_when_it_is_told() {
    let world = adaptive("cpu = 'off'");
    assert_eq!(world.adaptive().percent(), 100);
    world.clock.advance(SECOND * 60);
    world.adaptive().push(errors(9000), HOUR);
    assert_eq!(world.adaptive().percent(), 100);
    assert_eq!(each_second(&world, 2), [90, 81]);
}

/// It does not take as long to find out as it has taken.
#[test]
fn stress_that_is_long_over_is_over() {
    for (stress, silence) in [(5, 60), (600, 1200), (3600, 86_400), (3600, 86_400 * 365)] {
        let world = adaptive("cpu = 'off'");
        assert_eq!(world.adaptive().percent(), 100);
        world.adaptive().push(errors(9000), SECOND * stress);
        world.clock.advance(SECOND * silence);
        assert_eq!(world.adaptive().percent(), 100, "{stress} s of stress, {silence} s ago");
    }
}

#[test]
fn every_rule_has_a_factor_of_its_own() {
    let rule = |name: &str| {
        format!("[[rule]]\nname = '{name}'\nlimits = '9/s'\nadaptive = {{ cpu = 'off' }}\n")
    };
    let world = World::new(&(rule("one") + &rule("two")));
    world.rule("two").adaptive().unwrap().push(errors(9000), HOUR);
    world.clock.advance(SECOND * 2);
    let percent = |name: &str| world.rule(name).adaptive().unwrap().percent();
    assert_eq!((percent("one"), percent("two")), (100, 81));
}
