//! Instances that end while they hold units: those that are stopped give them back, those that die do not.

use std::thread;
use std::time::Duration;

use dashpot_testkit::RedisServer;
use dashpot_testkit::process::{await_stopped, signal};

use super::{ASKED, Crowd, Instance, LOOK, NOTICED, PATIENT, SHORT, passes, rules, until_leased};
use crate::client::PATIENCE;
use crate::service::until;

fn leased(limit: &str) -> String {
    format!("limits = ['{limit}']\nconsistency = 'leased'")
}

/// Of leases that would last for a minute.
#[test]
fn one_that_is_stopped_gives_back_what_it_holds() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let rule = leased("20000/year") + &format!("\nalgorithm = '{algorithm}'");
        let store = PATIENT.replace("16s", "1min");
        let mut fleet = Instance::fleet(2, &rules(&redis, &store, &rule));
        let other = fleet.pop().unwrap();
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            until_leased(&fleet[0]);
            crowd.until_admitted(300);
        });
        // At once, before the key is cold.
        let mut ended = fleet.pop().unwrap();
        ended.service.signal("TERM");
        assert_eq!(ended.service.end(PATIENCE).code(), Some(0));
        let left = other.client().check(LOOK).remaining();
        assert_eq!(left, 20000 - crowd.admitted(), "{algorithm}");
    }
}

/// Callers that are in the middle of asking do not keep it from giving back.
#[test]
fn one_that_is_stopped_in_the_middle_gives_back_what_it_holds() {
    let redis = RedisServer::start();
    let store = PATIENT.replace("16s", "1min");
    let mut fleet = Instance::fleet(2, &rules(&redis, &store, &leased("20000/year")));
    let other = fleet.pop().unwrap();
    let crowd = Crowd::new();
    let unanswered = thread::scope(|scope| {
        let ask = || {
            let mut client = fleet[0].client();
            loop {
                use std::io::Write;
                if client.stream.write_all(crate::client::check(ASKED).as_bytes()).is_err() {
                    return 1;
                }
                match client.answer() {
                    Ok(Some(answer)) => crowd.count(passes(&answer)),
                    Ok(None) | Err(_) => return 1,
                }
            }
        };
        let askers: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        until_leased(&fleet[0]);
        crowd.until_admitted(300);
        fleet[0].service.signal("TERM");
        askers.into_iter().map(|asker| asker.join().unwrap()).sum::<u64>()
    });
    assert_eq!(fleet[0].service.end(PATIENCE).code(), Some(0));
    let (left, most) = (other.client().check(LOOK).remaining(), 20000 - crowd.admitted());
    assert!((most - unanswered..=most).contains(&left), "{left} of {most}, {unanswered} untold");
}

/// Frozen first, so that it does not give anything back before it dies.
fn die(instance: Instance) {
    let process = instance.service.process();
    signal(process, "STOP");
    await_stopped(process, true);
    instance.service.crash();
}

#[test]
fn what_one_had_that_died_comes_back_when_its_lease_ends() {
    let redis = RedisServer::start();
    let mut fleet = Instance::fleet(2, &rules(&redis, SHORT, &leased("2000/s burst 1000")));
    let other = fleet.pop().unwrap();
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        until_leased(&fleet[0]);
        crowd.until_admitted(300);
    });
    die(fleet.pop().unwrap());
    let mut client = other.client();
    until("all of the capacity", NOTICED, || {
        let answer = client.check(LOOK);
        (passes(&answer) && answer.remaining() == 1000).then_some(())
    });
    // And then as much as ever, and no more.
    let fleet = [other];
    crowd.during(&fleet, || crowd.until_admitted(1000));
    crowd.is_within(1000, 2000);
}

/// The bucket fills up in half a second, but for what is out.
#[test]
fn what_one_had_that_died_does_not_come_back_before() {
    let redis = RedisServer::start();
    let store = PATIENT.replace("16s", "1min");
    let mut fleet = Instance::fleet(2, &rules(&redis, &store, &leased("2000/s burst 1000")));
    let other = fleet.pop().unwrap();
    let crowd = Crowd::new();
    let frozen = fleet[0].service.process();
    until("it to hold something when it stops", NOTICED, || {
        crowd.during(&fleet, || until_leased(&fleet[0]));
        signal(frozen, "STOP");
        await_stopped(frozen, true);
        thread::sleep(Duration::from_millis(700));
        let holds = other.client().check(LOOK).remaining() < 1000;
        if !holds {
            signal(frozen, "CONT");
        }
        holds.then_some(())
    });
    fleet.pop().unwrap().service.crash();
    let mut client = other.client();
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(200));
        let left = client.check(LOOK).remaining();
        assert!((500..1000).contains(&left), "{left}: at most half of it is out");
    }
    let fleet = [other];
    crowd.during(&fleet, || crowd.until_admitted(1000));
    crowd.is_within(1000, 2000);
}

/// Of a window, what is lost is lost: nobody knows whether it was spent.
#[test]
fn units_of_a_window_do_not_come_back_from_the_dead() {
    let redis = RedisServer::start();
    let rule = leased("5000/year") + "\nalgorithm = 'fixed-window'";
    let mut fleet = Instance::fleet(3, &rules(&redis, SHORT, &rule));
    let crowd = Crowd::new();
    for _ in 0..2 {
        crowd.during(&fleet, || {
            fleet.iter().for_each(until_leased);
            crowd.until_admitted(500);
        });
        die(fleet.pop().unwrap());
    }
    crowd.during(&fleet, || crowd.until_denied(200));
    thread::sleep(Duration::from_secs(2));
    crowd.during(&fleet, || crowd.until_denied(200));
    crowd.is_within(5000, 0);
}
