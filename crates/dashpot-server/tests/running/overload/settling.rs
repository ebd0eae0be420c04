//! What was taken under one factor, and settled under another.

use serde_json::json;

use super::{Patient, limit, passed, quick};
use crate::client::{Answer, Client};

const BUCKET: &str = "limits = ['10/day']";
const WINDOW: &str = "limits = ['10/day']\nalgorithm = 'fixed-window'";

fn by(rule: &str) -> (Patient, Client) {
    let patient = Patient::by(&quick("r", rule));
    let client = patient.client();
    (patient, client)
}

fn reserve(client: &mut Client, cost: u32) -> String {
    let asked = json!({"request": {"path": "/"}, "cost": cost, "reserve": true});
    let answer = client.check(&asked.to_string());
    assert!(answer.allowed(), "{answer:?}");
    answer.json()["reservation"].as_str().unwrap().to_owned()
}

fn settle(client: &mut Client, reservation: &str, used: u32) -> Answer {
    let asked = json!({"reservation": reservation, "used": used});
    client.post("/v1/settle", &asked.to_string())
}

#[track_caller]
fn settled(client: &mut Client, reservation: &str, used: u32) {
    let answer = settle(client, reservation, used);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// The limit, and what is left of it.
#[track_caller]
fn stands(patient: &Patient) -> (u64, u64) {
    let look = patient.look();
    (limit(&look), look.remaining())
}

#[test]
fn nothing_used_gives_all_back_whatever_the_factor_is_by_then() {
    for rule in [BUCKET, WINDOW] {
        let (patient, mut client) = by(rule);
        patient.suffers();
        // Under the lower limit all along.
        let held = reserve(&mut client, 4);
        assert_eq!(stands(&patient), (5, 1), "{rule}");
        settled(&mut client, &held, 0);
        assert_eq!(stands(&patient), (5, 5), "{rule}");
        // Taken under the lower one, given back under the whole one.
        let held = reserve(&mut client, 4);
        patient.recovers();
        settled(&mut client, &held, 0);
        assert_eq!(stands(&patient), (10, 10), "{rule}");
        // And the other way round.
        let held = reserve(&mut client, 8);
        patient.suffers();
        settled(&mut client, &held, 0);
        assert_eq!(stands(&patient), (5, 5), "{rule}");
        assert_eq!(settle(&mut client, &held, 0).status, 409, "{rule}: once, and not twice");
        assert_eq!(stands(&patient), (5, 5), "{rule}");
    }
}

#[test]
fn what_was_used_is_charged_in_place_of_what_was_taken() {
    for rule in [BUCKET, WINDOW] {
        let (patient, mut client) = by(rule);
        patient.suffers();
        let held = reserve(&mut client, 4);
        settled(&mut client, &held, 2);
        assert_eq!(stands(&patient), (5, 3), "{rule}: less");
        let held = reserve(&mut client, 1);
        settled(&mut client, &held, 3);
        assert_eq!(stands(&patient), (5, 0), "{rule}: more");
    }
}

/// Into debt by the lower limit, of which the whole one knows.
#[test]
fn more_than_there_is_becomes_a_debt() {
    let (patient, mut client) = by(WINDOW);
    patient.suffers();
    let held = reserve(&mut client, 1);
    settled(&mut client, &held, 8);
    assert_eq!(stands(&patient), (5, 0));
    patient.recovers();
    assert_eq!(stands(&patient), (10, 2));
    let held = reserve(&mut client, 2);
    patient.suffers();
    settled(&mut client, &held, 5);
    patient.recovers();
    assert_eq!(stands(&patient), (10, 0), "thirteen of ten");
}

#[test]
fn as_much_as_was_taken_changes_nothing() {
    for rule in [BUCKET, WINDOW] {
        let (patient, mut client) = by(rule);
        let held = reserve(&mut client, 4);
        patient.suffers();
        let before = stands(&patient);
        settled(&mut client, &held, 4);
        assert_eq!(stands(&patient), before, "{rule}");
        patient.recovers();
        assert_eq!(stands(&patient), (10, 6), "{rule}");
    }
}

#[test]
fn units_of_a_window_are_units_whatever_the_factor() {
    let (patient, mut client) = by(WINDOW);
    patient.suffers();
    let held = reserve(&mut client, 4);
    patient.recovers();
    settled(&mut client, &held, 3);
    assert_eq!(stands(&patient), (10, 7));
    let held = reserve(&mut client, 7);
    patient.suffers();
    settled(&mut client, &held, 1);
    assert_eq!(stands(&patient), (5, 1));
}

/// Ten are out, and five may be: five have to come back before the next goes out.
#[test]
fn permits_beyond_the_lower_limit_are_not_replaced() {
    let (patient, mut client) = by("limits = ['10 concurrent']");
    let held: Vec<_> = (0..10).map(|_| reserve(&mut client, 1)).collect();
    patient.suffers();
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    for held in &held[..5] {
        assert_eq!(passed(&mut client, asked, 1), 0);
        settled(&mut client, held, 1);
    }
    assert_eq!(passed(&mut client, asked, 2), 0, "five are out");
    settled(&mut client, &held[5], 0);
    assert_eq!(passed(&mut client, asked, 2), 1);
    patient.recovers();
    assert_eq!(passed(&mut client, asked, 9), 5);
    assert_eq!(patient.health()["reservations"], 10);
}

/// All or nothing: what a lowered rule denies takes nothing of another.
#[test]
fn what_a_lower_limit_denies_takes_nothing_elsewhere() {
    let rules =
        quick("r", BUCKET) + "[[rule]]\nname = 'fixed'\nlimits = ['100/day', '7 concurrent']\n";
    let patient = Patient::by(&rules);
    patient.suffers();
    let mut client = patient.client();
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    assert_eq!(passed(&mut client, asked, 20), 5);
    let look = r#"{"request":{"path":"/"},"cost":0,"reserve":true}"#;
    let told = client.check(look).json();
    let left = |policy: &str| {
        let policies = told["policies"].as_array().unwrap();
        policies.iter().find(|told| told["policy"] == policy).unwrap()["remaining"].clone()
    };
    assert_eq!(left("fixed-day"), json!(95), "{told}");
    assert_eq!(patient.health()["reservations"], 5);
}
