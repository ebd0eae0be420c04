//! Two on one Redis that are not equally well: each goes by its own factor, on the same counts.

use dashpot_testkit::RedisServer;
use serde_json::json;

use super::{ASKED, LOOK, Patient, SOON, limit, quick};
use crate::client::{Answer, Client};
use crate::service::until;

/// Patient, so that a busy machine is not taken for a server that is down.
fn rules(redis: &RedisServer, rule: &str) -> String {
    let url = redis.url();
    format!("[store]\nurl = '{url}'\ndeadline = '2s'\non_error = 'deny'\n") + rule
}

fn await_store(patient: &Patient) {
    until("the store", SOON, || (patient.health()["up"] == true).then_some(()));
}

/// What is answered by the store: a busy machine may still take it to be down for a moment, and then nothing is taken.
fn answered(client: &mut Client, asked: &str) -> Answer {
    until("the store to answer", SOON, || {
        let answer = client.check(asked);
        (answer.status != 503).then_some(answer)
    })
}

/// How many of so many pass, one after another.
fn passed(client: &mut Client, asked: &str, count: usize) -> usize {
    (0..count).filter(|_| answered(client, asked).allowed()).count()
}

/// One that suffers and one that does not.
fn pair(redis: &RedisServer, rule: &str) -> [Patient; 2] {
    let pair = [(); 2].map(|()| Patient::by(&rules(redis, rule)));
    pair.iter().for_each(await_store);
    pair[0].suffers();
    pair[1].recovers();
    pair
}

/// What each has left.
fn left([ill, well]: &[Patient; 2]) -> [u64; 2] {
    // Denials are remembered for a while.
    std::thread::sleep(std::time::Duration::from_millis(110));
    [ill, well].map(|one| answered(&mut one.client(), LOOK).remaining())
}

#[test]
fn units_of_a_window_are_everybodys() {
    for algorithm in ["fixed-window", "sliding-log", "sliding-window"] {
        let redis = RedisServer::start();
        let rule = quick("r", &format!("limits = ['10/year']\nalgorithm = '{algorithm}'"));
        let both = pair(&redis, &rule);
        let (mut ill, mut well) = (both[0].client(), both[1].client());
        assert_eq!(passed(&mut well, ASKED, 2), 2, "{algorithm}");
        assert_eq!(left(&both), [3, 8], "{algorithm}");
        assert_eq!(passed(&mut ill, ASKED, 9), 3, "{algorithm}: five in all");
        assert_eq!(left(&both), [0, 5], "{algorithm}");
        assert_eq!(passed(&mut well, ASKED, 9), 5, "{algorithm}: ten in all");
        assert_eq!(left(&both), [0, 0], "{algorithm}");
    }
}

/// By its depth in time: one of five is two of ten.
#[test]
fn time_in_a_bucket_is_everybodys() {
    let redis = RedisServer::start();
    let both = pair(&redis, &quick("r", "limits = ['10/year']"));
    let (mut ill, mut well) = (both[0].client(), both[1].client());
    assert_eq!([limit(&answered(&mut ill, LOOK)), limit(&answered(&mut well, LOOK))], [5, 10]);
    assert_eq!(passed(&mut ill, ASKED, 2), 2);
    assert_eq!(left(&both), [3, 6]);
    assert_eq!(passed(&mut well, ASKED, 2), 2);
    assert_eq!(left(&both), [2, 4]);
    assert_eq!(passed(&mut ill, ASKED, 9), 2);
    assert_eq!(left(&both), [0, 0]);
    assert_eq!(passed(&mut well, ASKED, 3), 0);
}

#[test]
fn permits_are_everybodys() {
    let redis = RedisServer::start();
    let both = pair(&redis, &quick("r", "limits = ['10 concurrent']"));
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    let (mut ill, mut well) = (both[0].client(), both[1].client());
    let take = |client: &mut Client| {
        answered(client, asked).json()["reservation"].as_str().unwrap().to_owned()
    };
    let held: Vec<_> = (0..4).map(|_| take(&mut well)).collect();
    assert_eq!(passed(&mut ill, asked, 3), 1, "five in all");
    assert_eq!(passed(&mut well, asked, 9), 5, "ten in all");
    let give_back = |nth: usize| {
        let told = json!({"reservation": held[nth], "used": 0}).to_string();
        // What fails is not tried again.
        await_store(&both[1]);
        assert_eq!(both[1].client().post("/v1/settle", &told).status, 200);
    };
    give_back(0);
    assert_eq!(passed(&mut ill, asked, 1), 0, "nine are out");
    assert_eq!(passed(&mut well, asked, 2), 1);
}

/// What it was reserved by is not asked for where it is settled.
#[test]
fn what_one_reserved_the_other_settles() {
    let redis = RedisServer::start();
    for algorithm in ["token-bucket", "fixed-window"] {
        let name = algorithm.replace('-', "");
        let rule = quick(&name, &format!("limits = ['10/year']\nalgorithm = '{algorithm}'"));
        let both = pair_with_a_token(&redis, &rule);
        let (mut ill, mut well) = (both[0].client(), both[1].client());
        let asked = r#"{"request":{"path":"/"},"cost":4,"reserve":true}"#;
        let mut reserve = || {
            let answer = answered(&mut ill, asked);
            answer.json()["reservation"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
        };
        let held = reserve();
        let mut settle = |held: &str, used: u32| {
            // What fails is not tried again.
            answered(&mut well, LOOK);
            let told = json!({"reservation": held, "used": used}).to_string();
            assert_eq!(well.post("/v1/settle", &told).status, 200, "{algorithm}");
        };
        settle(&held, 0);
        assert_eq!(left(&both), [5, 10], "{algorithm}: all is back");
        let held = reserve();
        settle(&held, 4);
        let [one, _] = left(&both);
        assert_eq!(one, 1, "{algorithm}: as much as was taken");
    }
}

/// They settle for each other only with the same token, which whoever tells them shows as well.
fn pair_with_a_token(redis: &RedisServer, rule: &str) -> [Patient; 2] {
    let flags = ["--admin-token", "correct-horse"];
    let pair = [(); 2].map(|()| Patient::with(&rules(redis, rule), &flags));
    for (patient, (errors, factor)) in pair.iter().zip([(1, "0.5"), (0, "1.0")]) {
        let token = ["authorization: Bearer correct-horse"];
        let ask = |method: &str, body: &str| {
            let mut client = patient.client();
            client.send(super::with_lines(method, "/v1/health", &token, body));
            client.expect()
        };
        let told = format!("{{\"errors\":{errors},\"for\":\"1h\"}}");
        assert_eq!(ask("POST", &told).status, 200);
        until("the factor", SOON, || {
            let answer = ask("GET", "");
            let is_so = answer.body.contains(&format!("\"factor\":{factor}"));
            (is_so && answer.json()["up"] == true).then_some(())
        });
    }
    pair
}

/// Who recovers is not held to what it was denied before for longer than denials are remembered.
#[test]
fn who_recovers_goes_on_with_what_is_left() {
    let redis = RedisServer::start();
    let rule = quick("r", "limits = ['10/year']\nalgorithm = 'fixed-window'");
    let both = pair(&redis, &rule);
    assert_eq!(passed(&mut both[0].client(), ASKED, 9), 5);
    both[0].recovers();
    let mut client = both[0].client();
    until("to pass again", SOON, || answered(&mut client, ASKED).allowed().then_some(()));
    assert_eq!(left(&both), [4, 4]);
}

/// Without Redis, what is counted here is lower as well.
#[test]
fn without_redis_the_factor_holds_too() {
    let redis = RedisServer::start();
    let rule = quick("r", "limits = ['10/year']\non_store_error = 'local'");
    let patient = Patient::by(&rules(&redis, &rule));
    await_store(&patient);
    patient.suffers();
    redis.kill();
    until("it to be missed", SOON, || (patient.health()["up"] == false).then_some(()));
    let mut client = patient.client();
    let answer = client.check(ASKED);
    assert!(answer.allowed() && answer.json()["degraded"] == true, "{answer:?}");
    assert_eq!(passed(&mut client, ASKED, 12), 4);
}
