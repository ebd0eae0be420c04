//! The rule of a factor, on anything that is said of a service.

use dashpot::{Band, Factor, FactorSettings, Percent, Vitals};
use dashpot_testkit::strategies::cases;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn percent(least: u32, most: u32) -> impl Strategy<Value = Percent> {
    (least..=most).prop_map(|hundredths| Percent::of(hundredths.into(), 10_000))
}

/// Any, and often one that is at the end of some band.
fn told() -> impl Strategy<Value = Option<Percent>> {
    let ends = [0, 1, 5, 10, 50, 80, 100, 255].map(Percent::new).to_vec();
    let far = (0.0..50_000.0).prop_map(Percent::from_fraction);
    option::of(prop_oneof![4 => percent(0, 10_000), 2 => prop::sample::select(ends), 1 => far])
}

fn vitals() -> impl Strategy<Value = Vitals> {
    (told(), told(), told()).prop_map(|(cpu, errors, slow)| Vitals { cpu, errors, slow })
}

fn band() -> impl Strategy<Value = Band> {
    (percent(0, 10_000), percent(0, 10_000))
        .prop_map(|(one, other)| Band::new(one.min(other), one.max(other)))
}

fn settings() -> impl Strategy<Value = FactorSettings> {
    let bands = (option::of(band()), option::of(band()), option::of(band()));
    let steps = (percent(100, 10_000), percent(1_000, 9_900), percent(10_100, 30_000));
    let any = (bands, steps).prop_map(|((cpu, errors, slow), (floor, down, up))| FactorSettings {
        cpu,
        errors,
        slow,
        floor,
        down,
        up,
    });
    prop_oneof![Just(FactorSettings::default()), any]
}

/// The rule, as it is written down: in plain fractions.
fn next(factor: f64, settings: &FactorSettings, vitals: &Vitals) -> f64 {
    let looks = [
        (settings.cpu, vitals.cpu),
        (settings.errors, vitals.errors),
        (settings.slow, vitals.slow),
    ];
    let mut all_healthy = true;
    for (band, told) in looks {
        if let (Some(band), Some(told)) = (band, told) {
            if told > band.stressed {
                return (factor * settings.down.as_fraction()).max(settings.floor.as_fraction());
            }
            all_healthy &= told < band.healthy;
        }
    }
    if all_healthy { (factor * settings.up.as_fraction()).min(1.0) } else { factor }
}

proptest! {
    #![proptest_config(cases(1000))]

    /// In bounds, and within a percent of what it should be.
    #[test]
    fn it_goes_by_the_rule(settings in settings(), all in vec(vitals(), 1..100)) {
        let mut factor = Factor::new(settings.clone());
        let mut right = 1.0;
        prop_assert_eq!(factor.percent(), 100);
        for vitals in &all {
            factor.tick(vitals);
            right = next(right, &settings, vitals);
            let percent = factor.percent();
            prop_assert!(percent >= settings.floor.whole_percents().max(1) && percent <= 100);
            prop_assert!(
                (f64::from(percent) - 100.0 * right).abs() <= 1.01,
                "{percent} %, not {right}: {vitals:?}"
            );
        }
    }

    /// Settings that make no sense as well.
    #[test]
    fn it_is_in_bounds_by_any_settings(
        many in vec((vec(told(), 9), vitals()), 1..50)
    ) {
        let mut factor = Factor::new(FactorSettings::default());
        for (any, vitals) in many {
            let band = |at: usize| Some(Band::new(any[at]?, any[at + 1]?));
            let some = |at: usize| any[at].unwrap_or_default();
            factor.adjust(FactorSettings {
                cpu: band(0),
                errors: band(2),
                slow: band(4),
                floor: some(6),
                down: some(7),
                up: some(8),
            });
            for _ in 0..10 {
                factor.tick(&vitals);
                prop_assert!((1..=100).contains(&factor.percent()), "{}", factor.percent());
            }
        }
    }

    /// As many steps in health as the worst has taken make it whole again: from the floor of 50 % that is eight.
    #[test]
    fn it_is_whole_after_eight_quiet_ticks(all in vec(vitals(), 0..100)) {
        let mut factor = Factor::new(FactorSettings::default());
        all.iter().for_each(|vitals| factor.tick(vitals));
        (0..8).for_each(|_| factor.tick(&Vitals::default()));
        prop_assert_eq!(factor.percent(), 100);
        (0..8).for_each(|_| factor.tick(&Vitals::default()));
        prop_assert_eq!(factor.percent(), 100);
    }

    /// If load follows the factor, and the band has room for a step up and one down, the factor goes one way and stays: it never goes up once it
    /// has gone down, nor down once it has gone up. A limit has whole percents, so there must be room for a percent of the load
    /// as well: it is 0.01 × load less after a step down, and so much more after a step up.
    #[test]
    fn in_a_band_with_room_it_does_not_swing(
        healthy in percent(100, 8_000), down in percent(5_000, 9_900), up in percent(10_100, 20_000),
        floor in percent(100, 10_000), more in 0.0..0.5, load in 0.0..3.0, start in 0_usize..100
    ) {
        let [least, fall, rise] = [healthy, down, up].map(Percent::as_fraction);
        let room: f64 = (0.01 * load + least) / fall;
        let room = room.max(least * rise / fall).max((least + 0.01 * load) * rise) + 0.001;
        let band = Band::new(healthy, Percent::from_fraction(room + more));
        let rule = FactorSettings { cpu: Some(band), errors: None, slow: None, floor, down, up };
        prop_assert!(rule.fits(band).is_ok());
        let mut factor = Factor::new(rule);
        let full = Vitals { cpu: Some(Percent::from_fraction(1000.0)), ..Vitals::default() };
        (0..start).for_each(|_| factor.tick(&full));
        let mut ways = (false, false);
        for _ in 0..1000 {
            let before = factor.percent();
            let cpu = Percent::from_fraction(load * f64::from(before) / 100.0);
            factor.tick(&Vitals { cpu: Some(cpu), ..Vitals::default() });
            ways.0 |= factor.percent() > before;
            ways.1 |= factor.percent() < before;
            prop_assert!(ways != (true, true), "up and down, at {before} %");
        }
    }
}

/// Where the room ends: `down` times the upper end is above `up` times the lower.
#[test]
fn a_band_without_room_is_told() {
    let rule = FactorSettings::default();
    let band = |from, to| Band::new(Percent::new(from), Percent::new(to));
    assert!(rule.fits(band(50, 80)).is_ok());
    assert!(rule.fits(band(9, 11)).is_err(), "0.9 × 11 is 1.1 × 9");
    assert!(rule.fits(band(81, 100)).is_ok());
    assert!(rule.fits(band(82, 100)).is_err());
    assert!(rule.fits(band(80, 50)).is_err());
}

/// Both ends belong to the band: there it stays.
#[test]
fn the_ends_of_a_band_are_in_it() {
    let told = |cpu: f64| {
        let mut factor = Factor::new(FactorSettings::default());
        let cpu_is = |cpu| Vitals { cpu: Some(Percent::from_fraction(cpu)), ..Vitals::default() };
        factor.tick(&cpu_is(0.9));
        factor.tick(&cpu_is(cpu));
        factor.percent()
    };
    assert_eq!([0.4999, 0.5, 0.8, 0.8001].map(told), [99, 90, 90, 81]);
}

/// One thing is enough for stress, and for health it takes all.
#[test]
fn all_must_be_well() {
    let mut factor = Factor::new(FactorSettings::default());
    let percents = |cpu, errors, slow| Vitals {
        cpu: Some(Percent::new(cpu)),
        errors: Some(Percent::new(errors)),
        slow: Some(Percent::new(slow)),
    };
    let mut told = |vitals| {
        factor.tick(&vitals);
        factor.percent()
    };
    assert_eq!(told(percents(10, 6, 0)), 90);
    assert_eq!(told(percents(10, 0, 11)), 81);
    assert_eq!(told(percents(81, 0, 0)), 72);
    assert_eq!(told(percents(49, 0, 7)), 72);
    assert_eq!(told(percents(49, 2, 4)), 72);
    assert_eq!(told(percents(49, 0, 4)), 80);
    assert_eq!(told(Vitals::default()), 88);
}
