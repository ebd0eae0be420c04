//! A factor that follows how a server is doing.
//!
//! Eight workers and 48 ms of work are 166.7 in a second at most. Of a limit of so many a second, the part f makes the workers
//! busy by f × limit / 166.7, if enough people ask. That is in the band from 50 % to 80 % for f from 83.3 / limit to 133.3 / limit: there the factor
//! stays. It takes no more than seven steps from 100 % to the floor of 50 %, and eight back.

use dashpot::{FactorSettings, Policy, Quota};

use crate::SECOND;
use crate::capacity::{CAPACITY, WORK, WORKERS};
use crate::server::Server;
use crate::service::{Second, Service};

/// The most steps from one end to the other.
const STEPS: u64 = 8;
/// Long enough to see a swing.
const LONG: u64 = 300;

/// Everybody together may ask for so much. They ask for more than the whole limit and more than the server can do.
pub(crate) fn service(limit: u64) -> Service {
    let limit = Policy::new("p", Quota::per_second(limit).burst(10)).unwrap();
    let mut service = Service::new(limit, FactorSettings::default(), Server::new(WORKERS), WORK);
    service.every = SECOND / 500;
    service
}

/// The factors at which the server is in the band, in whole percents.
fn band(limit: u64) -> (u8, u8) {
    let at = |load: f64| 100.0 * load * CAPACITY / limit as f64;
    (at(0.5).floor().clamp(50.0, 100.0) as u8, at(0.8).ceil().min(100.0) as u8)
}

fn last(service: &Service, seconds: u64) -> &[Second] {
    &service.seconds[service.seconds.len() - seconds as usize..]
}

/// For the last so many seconds the factor was one, and in the band; and what passed was that part of the limit.
fn rests(service: &Service, limit: u64, seconds: u64) {
    let (least, most) = band(limit);
    let last = last(service, seconds);
    let percent = last[0].percent;
    assert!((least..=most).contains(&percent), "{percent} %, not {least} to {most}: {last:?}");
    for second in last {
        assert_eq!(second.percent, percent, "it swings: {last:?}");
        assert!((0.5..=0.8).contains(&second.cpu) || percent == 100, "{second:?}");
        let right = limit * u64::from(percent) / 100;
        assert!(second.admitted.abs_diff(right) <= 1, "{second:?}, not {right}");
        assert_eq!(second.errors, 0.0, "{second:?}");
    }
}

/// 200 a second is more than the server can do: it is in the band from 41.7 %, which is below the floor, to 66.7 %.
#[test]
fn from_above() {
    let mut service = service(200);
    service.run(LONG);
    // What has piled up before is worked off meanwhile.
    rests(&service, 200, LONG - 2 * STEPS);
}

/// While everything takes four times as long the factor is at its floor. Then it goes up to where the server is half busy, and no
/// further.
#[test]
fn from_below() {
    let mut service = service(150);
    service.server.be_slower(4.0);
    service.run(30);
    assert_eq!(service.factor.percent(), 50);
    service.server.be_slower(1.0);
    service.run(LONG);
    rests(&service, 150, LONG - 60);
    let load = last(&service, 1)[0].cpu;
    assert!(load < 0.5 * 1.1, "it was half busy a step ago: {load}");
}

/// A limit that the server serves with ease is whole again some seconds after an incident.
#[test]
fn it_heals() {
    let mut service = service(80);
    service.run(60);
    assert!(service.seconds.iter().all(|second| second.percent == 100));
    service.server.be_slower(5.0);
    service.run(30);
    let incident = last(&service, 30);
    let percents: Vec<_> = incident.iter().take(8).map(|second| second.percent).collect();
    assert_eq!(percents, [100, 90, 81, 72, 65, 59, 53, 50], "{incident:?}");
    assert!(incident[8..].iter().all(|second| second.percent == 50), "{incident:?}");
    service.server.be_slower(1.0);
    // The server can do twice what the floor lets pass: what has piled up in half a minute takes no longer than that.
    service.run(30 + STEPS);
    assert_eq!(service.factor.percent(), 100);
    assert_eq!(service.factor.percent(), 100);
    service.run(LONG);
    rests(&service, 80, LONG);
}

/// A thousand quiet seconds, in which nobody asks for more than a little.
#[test]
fn it_does_not_creep_above_the_whole() {
    let mut service = service(200);
    service.every = SECOND;
    service.run(1000);
    assert!(service.seconds.iter().all(|second| second.percent == 100));
    // And then everybody comes: what they find is the limit, and its burst.
    service.every = SECOND / 1000;
    service.run(2);
    let found = last(&service, 2)[0];
    assert!(found.admitted <= 210, "{found:?}");
}

/// People come and their work is as it comes, up to a fifth more or less each; the server is busy by two thirds. Nothing is ever changed.
#[test]
fn it_does_not_swing_in_the_band() {
    let mut service = service(110);
    service.spread = 0.2;
    service.run(2 * LONG);
    assert!(service.seconds.iter().all(|second| second.percent == 100), "{:?}", service.seconds);
    assert!(service.seconds.iter().all(|second| (0.5..=0.8).contains(&second.cpu)));
}

/// The same after the factor has found its place: at 66 % of 200, with a load of 79 % on average, a second may be above 80 %. Then it goes one step
/// down, and has room: it does not come back, because the load is not below 50 %.
#[test]
fn nor_where_it_has_found_its_place() {
    let mut service = service(200);
    service.spread = 0.2;
    service.run(2 * LONG);
    let later = last(&service, 2 * LONG - 2 * STEPS);
    let ups = later.windows(2).filter(|pair| pair[1].percent > pair[0].percent).count();
    let downs = later.windows(2).filter(|pair| pair[1].percent < pair[0].percent).count();
    assert_eq!(ups, 0, "{later:?}");
    assert!(downs <= 1, "{later:?}");
    let (least, most) = band(200);
    assert!(later.iter().all(|second| (least..=most).contains(&second.percent)), "{later:?}");
}

/// Without a factor the same server is hardly ever well again: a limit of 165 leaves next to nothing to work off what has piled up in
/// the incident. With one it is.
#[test]
fn without_it_errors_stay() {
    let run = |settings| {
        let limit = Policy::new("p", Quota::per_second(165).burst(10)).unwrap();
        let mut service = Service::new(limit, settings, Server::new(WORKERS), WORK);
        service.every = SECOND / 500;
        service.run(30);
        service.server.be_slower(5.0);
        service.run(30);
        service.server.be_slower(1.0);
        service.run(120);
        let errors: f64 = last(&service, 60).iter().map(|second| second.errors).sum();
        errors / 60.0
    };
    let off = FactorSettings { cpu: None, errors: None, slow: None, ..FactorSettings::default() };
    assert!(run(off) > 0.9);
    assert_eq!(run(FactorSettings::default()), 0.0);
}
