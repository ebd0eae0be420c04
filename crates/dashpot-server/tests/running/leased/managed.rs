//! Keys that are blocked and reset while units of them are leased.

use dashpot_testkit::RedisServer;

use super::{ASKED, Crowd, Instance, NOTICED, PATIENT, SHORT, passes, rules, until_leased};
use crate::service::until;

const LEASED: &str = "limits = ['1000000/s']\nconsistency = 'leased'";

fn manage(instance: &Instance, what: &str, more: &str) {
    let body = format!(r#"{{"request":{{"path":"/"}},"rule":"all"{more}}}"#);
    let answer = instance.client().post(&format!("/v1/keys/{what}"), &body);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn a_block_holds_here_at_once_and_elsewhere_soon() {
    let redis = RedisServer::start();
    let fleet = Instance::fleet(2, &rules(&redis, SHORT, LEASED));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        manage(&fleet[0], "block", r#","for":"1h""#);
        let mut here = fleet[0].client();
        assert!((0..100).all(|_| !passes(&here.check(ASKED))), "it goes on where it is blocked");
        let mut there = fleet[1].client();
        until("the other to notice", NOTICED, || (!passes(&there.check(ASKED))).then_some(()));
        assert!((0..100).all(|_| !passes(&there.check(ASKED))), "it goes on elsewhere");
        manage(&fleet[1], "unblock", "");
        for one in &fleet {
            let mut client = one.client();
            until("the block to end", NOTICED, || passes(&client.check(ASKED)).then_some(()));
        }
    });
}

#[test]
fn a_reset_grants_the_limit_once_more() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let rule =
            format!("limits = ['1000/year']\nconsistency = 'leased'\nalgorithm = '{algorithm}'");
        let fleet = Instance::fleet(2, &rules(&redis, PATIENT, &rule));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            crowd.until_admitted(300);
            manage(&fleet[0], "reset", "");
            crowd.until_admitted(300);
            crowd.until_denied(200);
        });
        crowd.is_within(2 * 1000, 0);
        assert!(crowd.admitted() > 600, "{}", crowd.admitted());
    }
}

#[test]
fn looking_takes_nothing() {
    let redis = RedisServer::start();
    let rule = "limits = ['1000/year']\nconsistency = 'leased'";
    let fleet = Instance::fleet(2, &rules(&redis, PATIENT, rule));
    let crowd = Crowd::new();
    crowd.asking(&fleet, super::LOOK, || crowd.until_admitted(300));
    until("nobody to hold anything", NOTICED, || {
        let left: Vec<_> = fleet.iter().map(Instance::left_when_cold).collect();
        (left == [1000, 1000]).then_some(())
    });
}
