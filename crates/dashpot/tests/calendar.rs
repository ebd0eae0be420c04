//! Fixed windows follow the calendar of their time zone.
//!
//! The moments below were found by going through each stretch of time minute by minute and noting
//! when the local date entered a new day, week, month, quarter or year for the first time.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{
    Algorithm, Limiter, ManualClock, MemoryStore, Policy, PolicyError, Quota, Timestamp, Window,
};

fn limiter(window: &str, zone: &str, clock: &ManualClock) -> Limiter {
    let policy = Policy::builder("quota", Quota::new(1, window.parse().unwrap()))
        .algorithm(Algorithm::FixedWindow)
        .zone(zone.parse().unwrap())
        .build()
        .unwrap();
    Limiter::on(policy, MemoryStore::with_clock(clock.clone()))
}

/// One window starts at each of `starts`, and none in between.
#[track_caller]
fn windows_start(window: &str, zone: &str, starts: &[u64]) {
    let clock = ManualClock::default();
    let limiter = limiter(window, zone, &clock);
    for pair in starts.windows(2) {
        let (start, end) = (Timestamp::from_secs(pair[0]), Timestamp::from_secs(pair[1]));
        clock.set(start);
        let first = limiter.check("k");
        assert!(first.is_allowed(), "{zone}: a new {window} at {}", pair[0]);
        assert_eq!(first.statuses()[0].reset_after(), end.since(start), "{zone} {window}");

        clock.set(end.before(Duration::from_nanos(1)));
        let last = limiter.check("k");
        assert!(!last.is_allowed(), "{zone}: the same {window} until {}", pair[1]);
        assert_eq!(last.retry_after(), Some(Duration::from_nanos(1)));
    }
}

#[test]
fn days_are_shorter_and_longer_when_clocks_change() {
    windows_start("day", "Europe/Berlin", &[1_774_738_800, 1_774_821_600, 1_774_908_000]);
    windows_start("day", "Europe/Berlin", &[1_792_879_200, 1_792_969_200, 1_793_055_600]);
    windows_start("day", "America/New_York", &[1_793_505_600, 1_793_595_600, 1_793_682_000]);
    windows_start("day", "Australia/Lord_Howe", &[1_775_221_200, 1_775_307_600, 1_775_395_800]);
}

#[test]
fn days_start_where_midnight_is_skipped() {
    windows_start("day", "America/Sao_Paulo", &[1_541_214_000, 1_541_300_400, 1_541_383_200]);
}

#[test]
fn a_day_that_shows_twice_is_over_the_first_time() {
    // In 2010 clocks in St. John's went from 00:01 back to 23:01.
    windows_start("day", "America/St_Johns", &[1_289_010_600, 1_289_097_000, 1_289_187_000]);
    // Asked first in the hour that shows yesterday's date again, it is still the new day.
    let clock = ManualClock::new(Timestamp::from_secs(1_289_098_000));
    let limiter = limiter("day", "America/St_Johns", &clock);
    let decision = limiter.check("k");
    assert_eq!(
        decision.statuses()[0].reset_after(),
        Duration::from_secs(1_289_187_000 - 1_289_098_000)
    );
}

#[test]
fn a_day_that_never_was_is_no_window() {
    // Samoa went from 29 to 31 December 2011.
    let starts = [1_325_152_800, 1_325_239_200, 1_325_325_600, 1_325_412_000];
    windows_start("day", "Pacific/Apia", &starts);
}

#[test]
fn zones_off_the_hour() {
    windows_start("day", "Asia/Kathmandu", &[1_767_291_300, 1_767_377_700]);
}

/// Trap: "week starts on Thursday", as the epoch did.
#[test]
fn trap_week_starts_on_thursday() {
    windows_start("week", "Europe/Berlin", &[1_774_220_400, 1_774_821_600, 1_775_426_400]);
    windows_start("week", "UTC", &[1_793_577_600, 1_794_182_400, 1_794_787_200]);
    windows_start("7d", "UTC", &[1_793_577_600, 1_794_182_400, 1_794_787_200]);
}

/// Trap: "month = 30 days".
#[test]
fn trap_month_of_thirty_days() {
    windows_start("month", "Asia/Tokyo", &[1_769_871_600, 1_772_290_800, 1_774_969_200]);
    windows_start("month", "UTC", &[1_832_976_000, 1_835_481_600, 1_838_160_000]);
    windows_start("month", "America/New_York", &[1_772_341_200, 1_775_016_000]);
}

#[test]
fn quarters_and_years() {
    windows_start("3month", "UTC", &[1_775_001_600, 1_782_864_000, 1_790_812_800]);
    windows_start("year", "Europe/Berlin", &[1_798_758_000, 1_830_294_000]);
}

#[test]
fn other_windows_are_cut_from_the_epoch() {
    windows_start("5min", "UTC", &[1_774_220_400, 1_774_220_700, 1_774_221_000]);
    windows_start("30d", "UTC", &[691 * 30 * 86_400, 692 * 30 * 86_400]);
}

#[test]
fn the_first_week_is_cut_short_at_the_epoch() {
    windows_start("week", "UTC", &[0, 4 * 86_400, 11 * 86_400]);
}

#[test]
fn zones_do_not_mix() {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::with_clock(clock));
    let on = |zone: &str| {
        let policy = Policy::builder("quota", Quota::per_day(1))
            .algorithm(Algorithm::FixedWindow)
            .zone(zone.parse().unwrap());
        Limiter::on(policy.build().unwrap(), store.clone())
    };
    for zone in ["UTC", "Europe/Berlin", "America/New_York"] {
        assert!(on(zone).check("k").is_allowed(), "{zone}");
    }
    for zone in ["UTC", "Europe/Berlin", "America/New_York"] {
        assert!(!on(zone).check("k").is_allowed(), "{zone}");
    }
}

#[test]
fn a_zone_needs_a_calendar() {
    let build = |window: Window, algorithm: Algorithm| {
        Policy::builder("quota", Quota::new(1, window))
            .algorithm(algorithm)
            .zone("Europe/Berlin".parse().unwrap())
            .build()
    };
    assert!(build(Window::DAY, Algorithm::FixedWindow).is_ok());
    assert_eq!(build(Window::HOUR, Algorithm::FixedWindow).unwrap_err(), PolicyError::Zone);
    assert_eq!(build(Window::DAY, Algorithm::SlidingWindow).unwrap_err(), PolicyError::Zone);
}
