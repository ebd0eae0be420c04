//! Rules that are read again while the service suffers.

use serde_json::json;

use super::{ASKED, Patient, limit, passed, quick};
use crate::client::Answer;

const DAY: &str = "limits = ['10/day']\nalgorithm = 'fixed-window'";

fn reload(patient: &Patient, rules: &str) -> Answer {
    patient.home.replace("rules.toml", rules);
    patient.client().post("/v1/rules/reload", "")
}

#[track_caller]
fn reloaded(patient: &Patient, rules: &str) {
    let answer = reload(patient, rules);
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// What was told holds for the time that was said, whatever is read meanwhile.
#[test]
fn what_was_told_is_remembered() {
    let patient = Patient::by(&quick("r", DAY));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 5);
    reloaded(&patient, &(quick("r", DAY) + "[[rule]]\nname = 'new'\nlimits = ['99/day']\n"));
    patient.await_factor("r", 0.5);
    patient.keeps_factor("r", 0.5);
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 0, "and so are the counts");
}

/// A rule that has not changed is as it was, from the first request on.
#[test]
fn a_factor_outlives_a_change_elsewhere() {
    let rule = "[[rule]]\nname = 'r'\nlimits = ['10/day']\n\
        adaptive = { cpu = 'off', tick = '400ms', down = '50%', up = '101%' }\n";
    let patient = Patient::by(rule);
    patient.suffers();
    for nth in 0..3 {
        let other = format!("[[rule]]\nname = 'new-{nth}'\nlimits = ['99/day']\n");
        reloaded(&patient, &(rule.to_owned() + &other));
        assert_eq!(limit(&patient.look()), 5);
    }
}

#[test]
fn a_rule_that_no_longer_adapts_has_its_whole_limit() {
    let patient = Patient::by(&quick("r", DAY));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 5);
    reloaded(&patient, &format!("[[rule]]\nname = 'r'\n{DAY}\n"));
    let look = patient.look();
    assert_eq!((limit(&look), look.remaining()), (10, 5), "{look:?}");
    assert_eq!(patient.health()["adaptive"], json!([]));
    let metrics = patient.client().get("/metrics").body;
    assert!(!metrics.contains("dashpot_rule_factor{"), "{metrics}");
    let told = patient.client().post("/v1/health", r#"{"errors":1,"rule":"r"}"#);
    assert_eq!(told.status, 400, "{told:?}");
}

#[test]
fn a_rule_may_begin_to_adapt() {
    let patient = Patient::by(&format!("[[rule]]\nname = 'r'\n{DAY}\n"));
    assert_eq!(passed(&mut patient.client(), ASKED, 3), 3);
    reloaded(&patient, &quick("r", DAY));
    assert_eq!(patient.look().remaining(), 7);
    patient.suffers();
    let look = patient.look();
    assert_eq!((limit(&look), look.remaining()), (5, 2), "{look:?}");
}

#[test]
fn another_floor_holds_from_then_on() {
    let patient = Patient::by(&quick("r", DAY));
    patient.suffers();
    let lower = quick("r", DAY).replace("down", "floor = '20%', down");
    reloaded(&patient, &lower);
    patient.await_factor("r", 0.2);
    assert_eq!(limit(&patient.look()), 2);
    reloaded(&patient, &quick("r", DAY));
    patient.await_factor("r", 0.5);
}

#[test]
fn another_limit_is_lower_by_the_same_factor() {
    let patient = Patient::by(&quick("r", DAY));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 2), 2);
    reloaded(&patient, &quick("r", &DAY.replace("10/", "20/")));
    patient.await_factor("r", 0.5);
    let look = patient.look();
    assert_eq!((limit(&look), look.remaining()), (10, 8), "{look:?}");
}

/// A band without room for a step up and a step down.
#[test]
fn what_would_swing_is_refused_and_all_stays_as_it_was() {
    let patient = Patient::by(&quick("r", DAY));
    patient.suffers();
    let narrow = quick("r", DAY).replace("tick", "errors = '4%..5%', tick");
    let answer = reload(&patient, &narrow);
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.body.contains("3:"), "where it is: {answer:?}");
    patient.keeps_factor("r", 0.5);
    // Once by who asked for it, and once more if the file was looked at meanwhile.
    let failed = patient.service.metric("dashpot_failed_reloads_total");
    assert!((1.0..=2.0).contains(&failed), "{failed}");
    let diff = patient.client().post("/v1/rules/diff", &narrow);
    assert_eq!(diff.status, 400, "{diff:?}");
}

/// A counter never goes back.
#[test]
fn what_came_of_priorities_is_remembered() {
    let priority = "[[priority]]\nname = 'pay'\nclass = 'critical'\nmatch = { path = '/' }\n";
    let patient = Patient::by(&(priority.to_owned() + &quick("r", DAY)));
    assert_eq!(passed(&mut patient.client(), ASKED, 12), 10);
    reloaded(&patient, &(priority.to_owned() + &quick("r", &DAY.replace("10/", "20/"))));
    let of = |what: &str| {
        patient.service.metric(&format!("dashpot_priority_{what}_total{{priority=\"pay\"}}"))
    };
    assert_eq!((of("allowed"), of("denied")), (10.0, 2.0));
}

/// What would change is told by its name.
#[test]
fn what_changes_is_told() {
    let patient = Patient::by(&quick("r", DAY));
    let diff = patient.client().post("/v1/rules/diff", &format!("[[rule]]\nname = 'r'\n{DAY}\n"));
    assert_eq!(diff.status, 200, "{diff:?}");
    assert!(diff.body.contains("adaptive"), "{diff:?}");
}
