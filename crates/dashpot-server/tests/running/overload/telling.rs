//! Who tells how the service is doing, of which rules, and for how long.

use std::time::Instant;

use serde_json::json;

use super::{Duration, Patient, SOON, quick};
use crate::service::until;

/// Two rules that adapt, and one that does not.
fn three() -> String {
    quick("one", "limits = ['10/day']")
        + &quick("other", "limits = ['10/day']")
        + "[[rule]]\nname = 'fixed'\nlimits = ['10/day']\n"
}

#[test]
fn it_is_shown_beside_what_it_comes_to() {
    let patient = Patient::by(&three());
    let health = patient.health();
    let names: Vec<_> = health["adaptive"].as_array().unwrap().iter().map(|r| &r["rule"]).collect();
    assert_eq!(names, ["one", "other"], "in their order, and none that does not adapt: {health}");
    assert_eq!(health["store"], "memory", "beside the rest: {health}");
    patient.suffers();
    for rule in ["one", "other"] {
        let series = format!("dashpot_rule_factor{{rule=\"{rule}\"}}");
        assert_eq!(patient.service.metric(&series), 0.5);
    }
    let metrics = patient.client().get("/metrics").body;
    assert!(!metrics.contains("dashpot_rule_factor{rule=\"fixed\"}"), "{metrics}");
    // Whoever tells is answered with the rules it was about.
    let answer = patient.client().post("/v1/health", r#"{"errors":1,"for":"1h"}"#);
    let told = answer.json();
    assert_eq!(told["adaptive"][0]["rule"], "one", "{told}");
    assert_eq!(told["adaptive"][0]["factor"], 0.5, "{told}");
}

#[test]
fn by_its_name_one_rule_is_told_alone() {
    let patient = Patient::by(&three());
    patient.tell(&json!({"errors": 1, "for": "1h", "rule": "other"}));
    patient.await_factor("other", 0.5);
    patient.keeps_factor("one", 1.0);
    let answer = patient.look().json();
    let limits = [0, 1, 2].map(|nth| answer["policies"][nth]["limit"].as_u64().unwrap());
    assert_eq!(limits, [10, 5, 10], "{answer}");
    // And back.
    patient.tell(&json!({"errors": 0, "for": "1h", "rule": "other"}));
    patient.await_factor("other", 1.0);
}

#[test]
fn it_holds_for_the_time_that_is_said() {
    let patient = Patient::by(&three());
    // It is lower before, or it might be whole again before anybody has seen that it is lower.
    patient.suffers();
    let begun = Instant::now();
    patient.tell(&json!({"errors": 1, "for": "700ms"}));
    patient.await_factor("one", 1.0);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(700), "{took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Ten seconds, of which not all are waited for.
#[test]
fn it_holds_for_a_while_if_nothing_is_said() {
    let patient = Patient::by(&three());
    patient.tell(&json!({"errors": 1}));
    patient.await_factor("one", 0.5);
    std::thread::sleep(Duration::from_millis(1500));
    patient.keeps_factor("one", 0.5);
}

#[test]
fn who_tells_again_is_believed_from_then_on() {
    let patient = Patient::by(&three());
    for (errors, factor) in [(1, 0.5), (0, 1.0), (1, 0.5), (0, 1.0)] {
        patient.tell(&json!({"errors": errors, "for": "1h"}));
        patient.await_factor("one", factor);
    }
    // A shorter time takes the place of a longer one.
    patient.tell(&json!({"errors": 1, "for": "1h"}));
    patient.await_factor("one", 0.5);
    patient.tell(&json!({"errors": 1, "for": "50ms"}));
    patient.await_factor("one", 1.0);
}

/// One who knows the processors, and one who knows the errors, need not know of each other.
#[test]
fn what_is_told_of_one_thing_does_not_end_what_was_told_of_another() {
    let rules = "[[rule]]\nname = 'r'\nlimits = ['10/day']\n\
        adaptive = { tick = '10ms' }";
    let patient = Patient::by(rules);
    patient.tell(&json!({"errors": 1, "for": "1h"}));
    patient.await_factor("r", 0.5);
    patient.tell(&json!({"cpu": 0, "for": "1h"}));
    patient.keeps_factor("r", 0.5);
}

/// Told while everybody asks: each sees a limit that was said at some time.
#[test]
fn it_may_be_told_while_it_is_asked() {
    let patient = Patient::by(&quick("one", "limits = ['1M/day']"));
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = patient.client();
                while !over.load(std::sync::atomic::Ordering::SeqCst) {
                    let answer = client.check(super::ASKED);
                    assert!(answer.allowed(), "{answer:?}");
                    assert!([500_000, 1_000_000].contains(&super::limit(&answer)), "{answer:?}");
                }
            });
        }
        for _ in 0..5 {
            patient.suffers();
            patient.recovers();
        }
        over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// As the page has it.
#[test]
fn what_the_page_tells_can_be_told() {
    let page = include_str!("../../../../../docs/overload.md");
    let told = page.split("/v1/health -d '").nth(1).and_then(|rest| rest.split('\'').next());
    let patient = Patient::by(&three());
    patient.tell(&serde_json::from_str(told.expect("a command")).unwrap());
    until("the errors it was told of", SOON, || {
        (patient.health()["adaptive"][0]["errors"] == 0.02).then_some(())
    });
}
