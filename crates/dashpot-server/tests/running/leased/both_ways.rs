//! Requests that are held to leased rules and exact ones at once, and what is given back of both.

use dashpot_testkit::{RedisServer, on_all_threads};

use super::{Crowd, Instance, NOTICED, PATIENT, passes, rules};
use crate::service::until;

const EVERYBODY: &str = "limits = ['9000/year']\nconsistency = 'leased'";

/// What is left of the leased rule, when nobody holds anything.
fn until_left(fleet: &[Instance], wanted: u64) {
    let look = r#"{"request":{"path":"/"},"rule":"all"}"#;
    until("all to be given back", NOTICED, || {
        let cold = fleet.iter().all(|one| one.leased_keys() == 0);
        let told = fleet[0].client().post("/v1/keys/peek", look).remaining();
        assert!(told <= wanted, "{told} of {wanted}");
        (cold && told == wanted).then_some(())
    });
}

/// Denied by an exact rule, it takes nothing of the leased one.
#[test]
fn all_is_taken_or_nothing() {
    let redis = RedisServer::start();
    for exact in ["limits = ['70/year']", "limits = ['70/year']\nalgorithm = 'sliding-log'"] {
        let each = format!("[[rule]]\nname = 'each'\nby = ['user']\n{exact}\n");
        let prefix = format!("prefix = 'p{}'\n", exact.len());
        let fleet = Instance::fleet(2, &(rules(&redis, &(prefix + PATIENT), EVERYBODY) + &each));
        let admitted = on_all_threads(4, |thread| {
            let mut client = fleet[thread as usize % 2].client();
            let user = thread / 2;
            let asked = format!(r#"{{"request":{{"path":"/","user":"user-{user}"}}}}"#);
            (0..150).filter(|_| passes(&client.check(&asked))).count()
        });
        assert_eq!([admitted[0] + admitted[1], admitted[2] + admitted[3]], [70, 70]);
        until_left(&fleet, 9000 - 140);
        fleet.into_iter().for_each(|one| one.service.stop());
    }
}

/// Denied by the leased rule, it takes nothing of the exact one.
#[test]
fn nor_the_other_way_round() {
    let redis = RedisServer::start();
    let leased = "limits = ['400/year']\nconsistency = 'leased'";
    let exact = "[[rule]]\nname = 'exact'\nlimits = ['5000/year']\n";
    let fleet = Instance::fleet(2, &(rules(&redis, PATIENT, leased) + exact));
    let crowd = Crowd::new();
    crowd.during(&fleet, || crowd.until_denied(300));
    crowd.is_within(400, 0);
    let look = r#"{"request":{"path":"/"},"rule":"exact"}"#;
    let left = fleet[0].client().post("/v1/keys/peek", look).remaining();
    assert_eq!(left, 5000 - crowd.admitted());
}

/// Two of three turn out to have cost nothing.
fn settled(algorithms: &[&str]) {
    for algorithm in algorithms {
        let redis = RedisServer::start();
        let rule = format!("{EVERYBODY}\nalgorithm = '{algorithm}'\n");
        let fleet = Instance::fleet(2, &rules(&redis, PATIENT, &rule));
        on_all_threads(4, |thread| {
            let mut client = fleet[thread as usize % 2].client();
            for nth in 0..150 {
                let answer = client.check(r#"{"request":{"path":"/"},"reserve":true}"#);
                assert!(answer.allowed(), "{answer:?}");
                if nth % 3 == 0 {
                    continue;
                }
                let reservation = answer.json()["reservation"].as_str().unwrap().to_owned();
                let settled = format!(r#"{{"reservation":"{reservation}","used":0}}"#);
                assert_eq!(client.post("/v1/settle", &settled).status, 200);
                assert_eq!(client.post("/v1/settle", &settled).status, 409);
            }
        });
        until_left(&fleet, 9000 - 4 * 50);
    }
}

#[test]
fn what_is_settled_of_a_bucket_comes_back_once() {
    settled(&["token-bucket", "leaky-bucket"]);
}

#[test]
fn what_is_settled_of_a_window_comes_back_once() {
    settled(&["fixed-window", "sliding-window"]);
}
