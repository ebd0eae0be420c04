//! One limit, whichever door is asked at.

use dashpot_testkit::{RedisServer, on_all_threads};

use super::{ASKED, Crowd, Instance, NOTICED, PATIENT, passes, rules, until_leased};
use crate::client::forward_auth;
use crate::service::until;

/// As Envoy asks.
const DESCRIPTOR: &str =
    r#"{"domain":"edge","descriptors":[{"entries":[{"key":"a","value":"b"}]}]}"#;

#[test]
fn all_doors_spend_the_same_units() {
    let redis = RedisServer::start();
    let rule = "limits = ['2500/year']\nconsistency = 'leased'";
    let fleet = Instance::fleet(2, &rules(&redis, PATIENT, rule));
    let crowd = Crowd::new();
    on_all_threads(6, |thread| {
        let mut client = fleet[thread as usize % 2].client();
        let mut denied = 0;
        while denied < 100 {
            let answer = match thread / 2 {
                0 => client.check(ASKED),
                1 => {
                    client.send(forward_auth("/"));
                    client.expect()
                }
                _ => client.post("/json", DESCRIPTOR),
            };
            let passed = passes(&answer);
            denied += u64::from(!passed);
            crowd.count(passed);
        }
    });
    crowd.is_within(2500, 0);
    let left = 2500 - crowd.admitted();
    until("all to be given back", NOTICED, || {
        let told: Vec<_> = fleet.iter().map(Instance::left_when_cold).collect();
        assert!(told.iter().all(|told| *told <= left), "{told:?} of {left}");
        (told == [left; 2]).then_some(())
    });
}

/// At each door alone the key is leased.
#[test]
fn at_every_door_hot_keys_are_leased() {
    let redis = RedisServer::start();
    let rule = "limits = ['1000000/day']\nconsistency = 'leased'";
    let asked = [forward_auth("/"), crate::client::post("/json", DESCRIPTOR)];
    for asked in asked {
        let fleet = Instance::fleet(1, &rules(&redis, PATIENT, rule));
        let (over, one) = (std::sync::atomic::AtomicBool::new(false), &fleet[0]);
        std::thread::scope(|scope| {
            let ends = super::Over(&over);
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = one.client();
                    while !over.load(std::sync::atomic::Ordering::SeqCst) {
                        client.send(&asked);
                        assert!(passes(&client.expect()), "{asked}");
                    }
                });
            }
            until_leased(one);
            drop(ends);
        });
        fleet.into_iter().for_each(|one| one.service.stop());
    }
}
