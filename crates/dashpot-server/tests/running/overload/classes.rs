//! Who goes first: by class, a part of the permits is left to those above. And a capacity, which is left out here.

use serde_json::{Value, json};

use super::{Patient, passed};
use crate::client::{Client, forward_auth};

const CLASSES: &str = r#"
[[priority]]
name = "payments"
match = { path = "/pay" }
class = "critical"

[[priority]]
name = "reports"
match = { path = "/reports" }
class = "background"

[[priority]]
name = "heavy"
match = { path = "/heavy" }
weight = 2
class = "critical"

[[priority]]
name = "hooks"
match = { path = "/hooks" }
weight = "unlimited"

[[rule]]
name = "fleet"
limits = ["10 concurrent"]
classes = { normal = "80%", background = "50%" }
"#;

fn reserve(path: &str) -> String {
    json!({"request": {"path": path}, "reserve": true}).to_string()
}

/// Takes one, and says how to give it back.
#[track_caller]
fn taken(client: &mut Client, path: &str) -> Value {
    let answer = client.check(&reserve(path));
    assert!(answer.allowed(), "{path}: {answer:?}");
    answer.json()["reservation"].clone()
}

#[track_caller]
fn give_back(client: &mut Client, reservation: &Value) {
    let settled = json!({"reservation": reservation, "used": 0}).to_string();
    assert_eq!(client.post("/v1/settle", &settled).status, 200);
}

#[test]
fn each_class_may_fill_its_part() {
    for (path, part) in [("/reports", 5), ("/", 8), ("/pay", 10)] {
        let patient = Patient::by(CLASSES);
        assert_eq!(passed(&mut patient.client(), &reserve(path), 12), part, "{path}");
    }
}

/// Whoever holds them: five are in, and background may not be the sixth.
#[test]
fn all_count_together() {
    let patient = Patient::by(CLASSES);
    let mut client = patient.client();
    let held: Vec<_> = (0..5).map(|_| taken(&mut client, "/pay")).collect();
    assert_eq!(passed(&mut client, &reserve("/reports"), 2), 0);
    assert_eq!(passed(&mut client, &reserve("/"), 9), 3);
    assert_eq!(passed(&mut client, &reserve("/pay"), 9), 2);
    assert_eq!(passed(&mut client, &reserve("/"), 2), 0);
    // Three of ten leave; eight, and normal may be the eighth.
    held[..3].iter().for_each(|one| give_back(&mut client, one));
    assert_eq!(passed(&mut client, &reserve("/reports"), 2), 0);
    assert_eq!(passed(&mut client, &reserve("/"), 9), 1);
    assert_eq!(passed(&mut client, &reserve("/pay"), 9), 2);
}

/// A weight multiplies no limit that classes share.
#[test]
fn whatever_their_weight_they_are_counted_with_the_others() {
    let patient = Patient::by(CLASSES);
    let mut client = patient.client();
    assert_eq!(passed(&mut client, &reserve("/"), 9), 8);
    let heavy = passed(&mut client, &reserve("/heavy"), 30);
    assert_eq!(heavy, 2, "ten in all");
    assert_eq!(passed(&mut client, &reserve("/hooks"), 5), 5, "whom nothing holds up");
}

#[test]
fn who_is_denied_hears_429_here() {
    let patient = Patient::by(CLASSES);
    let mut client = patient.client();
    assert_eq!(passed(&mut client, &reserve("/"), 8), 8);
    let denied = client.check(&reserve("/"));
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.json()["rule"], "fleet");
    client.send(forward_auth("/"));
    let denied = client.expect();
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.json()["status"], 429, "{denied:?}");
    let call =
        json!({"domain": "d", "descriptors": [{"entries": [{"key": "path", "value": "/"}]}]});
    let denied = client.post("/json", &call.to_string());
    assert_eq!(denied.status, 429, "{denied:?}");
}

#[test]
fn priorities_are_counted() {
    let patient = Patient::by(CLASSES);
    let mut client = patient.client();
    assert_eq!(passed(&mut client, &reserve("/reports"), 7), 5);
    assert_eq!(passed(&mut client, &reserve("/pay"), 3), 3);
    let of = |what: &str, name: &str| {
        patient.service.metric(&format!("dashpot_priority_{what}_total{{priority=\"{name}\"}}"))
    };
    assert_eq!((of("allowed", "reports"), of("denied", "reports")), (5.0, 2.0));
    assert_eq!((of("allowed", "payments"), of("denied", "payments")), (3.0, 0.0));
    assert_eq!((of("allowed", "hooks"), of("denied", "hooks")), (0.0, 0.0));
}

/// A class alone changes nobody's limits or counts.
#[test]
fn without_a_weight_limits_and_counts_are_everybodys() {
    let rules = format!("{CLASSES}\n[[rule]]\nname = 'day'\nlimits = ['6/day']\n");
    let patient = Patient::by(&rules.replace("classes =", "#"));
    let mut client = patient.client();
    let day = |path: &str| {
        let look = json!({"request": {"path": path}, "cost": 0, "reserve": true}).to_string();
        let answer = patient.client().check(&look).json();
        let policies = answer["policies"].as_array().unwrap().clone();
        policies.into_iter().find(|told| told["policy"] == "day").unwrap()["remaining"].clone()
    };
    assert_eq!(passed(&mut client, &reserve("/reports"), 2), 2);
    assert_eq!(passed(&mut client, &reserve("/pay"), 2), 2);
    assert_eq!([day("/"), day("/pay"), day("/reports")], [json!(2), json!(2), json!(2)]);
}

/// It serves nothing itself, so it has no room to run out of.
#[test]
fn a_capacity_is_left_out_here() {
    let rules = "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 0 }\n\
        [[rule]]\nname = 'day'\nlimits = ['50/day']\n";
    let patient = Patient::by(rules);
    let mut client = patient.client();
    assert_eq!(passed(&mut client, &reserve("/"), 20), 20);
    client.send(forward_auth("/"));
    assert_eq!(client.expect().status, 200);
    let answer = client.check(super::LOOK).json();
    assert_eq!(answer["policies"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["policies"][0]["remaining"], 29, "{answer}");
    // Alone, too.
    let patient = Patient::by("[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 0 }\n");
    let mut client = patient.client();
    let asked = super::ASKED;
    assert_eq!(passed(&mut client, asked, 5), 5);
    assert_eq!(client.post("/v1/rules/explain", asked).status, 200);
    assert_eq!(patient.health()["capacity"], json!([]));
}
