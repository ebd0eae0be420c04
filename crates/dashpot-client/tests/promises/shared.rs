//! Several clients at one quota, far away, and in the middle of a window.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dashpot::{Clock, Percent, Quota};
use dashpot_client::{Manners, Polite};
use tower::ServiceExt;

use super::quotas::{Enforced, Form, Kind, tell};
use super::{Answer, HERE, Scene};
use crate::common::{Arrival, Server, World, answer, get, millis, secs};

struct Case {
    kind: Kind,
    form: Form,
    limit: u64,
    window: u64,
    way: u64,
    /// How far into a window it begins.
    into: u64,
    /// How many clients, and how many calls each has at once.
    clients: usize,
    each: usize,
}

/// How many were let in and how many turned away, in twenty windows.
fn rush(case: &Case, seed: u64) -> (usize, usize) {
    let mut world = World::new();
    let begin = world.clock.now().before(millis(case.into));
    let (kind, form) = (case.kind, case.form);
    let enforced = Enforced::new(kind, case.limit, secs(case.window), begin);
    let enforced = Arc::new(Mutex::new(enforced));
    let quota = enforced.clone();
    let handler = move |arrival: &Arrival| -> Answer {
        let mut quota = quota.lock().unwrap();
        let (is_in, left, reset) = quota.take(arrival.at);
        let headers = tell(form, &quota, left, reset, arrival.at);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|[name, value]| (name.as_str(), value.as_str())).collect();
        answer(if is_in { 200 } else { 429 }, &headers)
    };
    let server = Server::new(&world.clock, handler).way(millis(case.way));
    let end: Duration = secs(case.window * 20);
    let ends = world.at(end);
    for client in 0..case.clients {
        let manners = Manners::builder()
            .clock(world.clock.clone())
            .seed(seed * 1000 + client as u64)
            .patience(secs(1_000_000))
            .attempts(1000)
            .retry_floor(Quota::per_second(1000))
            .build();
        let polite = Polite::new(server.clone(), manners);
        world.wait_for(polite.clone().oneshot(get(HERE))).unwrap();
        for _ in 0..case.each {
            let (polite, clock) = (polite.clone(), world.clock.clone());
            world.spawn(async move {
                while clock.now() < ends {
                    polite.clone().oneshot(get(HERE)).await.unwrap();
                }
            });
        }
    }
    world.run_until(end);
    let enforced = enforced.lock().unwrap();
    (enforced.let_in, enforced.denied)
}

fn check(case: &Case, most_denied_percent: usize, least_used_percent: usize) {
    let most = case.limit as usize * 20;
    for seed in 0..3 {
        let (let_in, denied) = rush(case, seed);
        eprintln!("{let_in} of {most} let in, {denied} turned away");
        assert!(denied * 100 <= let_in * most_denied_percent, "{denied} turned away of {let_in}");
        assert!(let_in * 100 >= most * least_used_percent, "only {let_in} of {most}");
    }
}

const ONE: Case = Case {
    kind: Kind::Fixed,
    form: Form::XMillis,
    limit: 100,
    window: 10,
    way: 20,
    into: 0,
    clients: 1,
    each: 10,
};

#[test]
fn to_begin_in_the_middle_of_a_window_does_not_matter() {
    for into in [1, 3333, 9000, 9999] {
        check(&Case { into, ..ONE }, 0, 80);
    }
}

#[test]
fn a_server_far_away_does_not_matter() {
    check(&Case { way: 1000, each: 60, ..ONE }, 0, 80);
    check(&Case { way: 400, each: 60, kind: Kind::Steady, form: Form::Requests, ..ONE }, 0, 80);
}

#[test]
fn short_windows_are_used_as_well_as_long_ones() {
    check(&Case { limit: 10, window: 1, way: 10, ..ONE }, 0, 80);
    check(&Case { limit: 20, window: 2, kind: Kind::Steady, form: Form::Requests, ..ONE }, 0, 80);
}

#[test]
fn many_who_call_at_once_are_not_turned_away() {
    check(&Case { each: 300, ..ONE }, 0, 80);
    check(&Case { each: 300, kind: Kind::Steady, form: Form::Anthropic, ..ONE }, 0, 80);
}

#[test]
fn several_clients_at_one_quota_are_rarely_turned_away() {
    check(&Case { clients: 2, each: 5, ..ONE }, 5, 80);
    check(&Case { clients: 5, each: 4, ..ONE }, 10, 80);
}

#[test]
fn several_clients_at_one_bucket_are_rarely_turned_away() {
    let bucket = Case { kind: Kind::Steady, form: Form::Requests, clients: 3, each: 4, ..ONE };
    // Each believes that what trickles in is for it: that some are turned away cannot be helped, that most are can.
    check(&bucket, 40, 70);
}

#[test]
fn who_is_thrifty_uses_as_much() {
    let quota = Arc::new(Mutex::new(None::<Enforced>));
    let enforced = quota.clone();
    let handler = move |arrival: &Arrival| -> Answer {
        let mut enforced = enforced.lock().unwrap();
        let quota =
            enforced.get_or_insert_with(|| Enforced::new(Kind::Fixed, 50, secs(50), arrival.at));
        let (is_in, left, reset) = quota.take(arrival.at);
        let seconds = reset.as_secs().to_string();
        let left = left.to_string();
        let headers = [
            ("ratelimit-limit", "50"),
            ("ratelimit-remaining", left.as_str()),
            ("ratelimit-reset", seconds.as_str()),
        ];
        answer(if is_in { 200 } else { 429 }, &headers)
    };
    let mut scene = Scene::new(handler, |builder| {
        builder.thrift(Percent::new(100), secs(10)).patience(secs(10_000))
    });
    for _ in 0..200 {
        scene.call_at(millis(10), get(HERE));
    }
    scene.call(get(HERE));
    scene.world.run_until(secs(50));
    let times = scene.times();
    // Spread from the beginning: about half of them in half of the time.
    let half = times.iter().filter(|time| **time <= secs(25)).count();
    assert!((15..=35).contains(&half), "{half} in the first half of {}", times.len());
    assert!(times.len() >= 40, "only {}", times.len());
}
