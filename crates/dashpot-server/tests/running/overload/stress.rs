//! What is stress, what is health, and what is neither.

use std::time::Instant;

use serde_json::json;

use super::{Duration, Patient, until};

/// Looks at everything.
const ALL: &str = "[[rule]]\nname = 'all'\nlimits = ['10/day']\n\
    adaptive = { latency = '100ms', tick = '10ms', cpu = '50%..80%', errors = '1%..5%' }\n";

/// What is told, and nothing measured beside it.
fn told(cpu: f64, errors: f64, slow: f64) -> serde_json::Value {
    json!({"cpu": cpu, "errors": errors, "slow": slow, "for": "1h"})
}

#[test]
fn one_thing_above_its_band_is_enough() {
    let patient = Patient::by(ALL);
    for stress in [told(0.81, 0.0, 0.0), told(0.0, 0.06, 0.0), told(0.0, 0.0, 0.11)] {
        patient.tell(&stress);
        patient.await_factor("all", 0.5);
        patient.tell(&told(0.49, 0.0, 0.04));
        patient.await_factor("all", 1.0);
    }
    patient.tell(&told(1.0, 1.0, 1.0));
    patient.await_factor("all", 0.5);
    patient.keeps_factor("all", 0.5);
}

/// The ends belong to the band.
#[test]
fn within_a_band_it_stays_as_it_is() {
    let patient = Patient::by(ALL);
    let within = [
        told(0.6, 0.0, 0.0),
        told(0.5, 0.0, 0.0),
        told(0.8, 0.0, 0.0),
        told(0.0, 0.01, 0.0),
        told(0.0, 0.05, 0.0),
        told(0.0, 0.0, 0.05),
        told(0.0, 0.0, 0.1),
        told(0.8, 0.05, 0.1),
    ];
    // The machine may have been busy until somebody told.
    patient.tell(&told(0.0, 0.0, 0.0));
    patient.await_factor("all", 1.0);
    for within in &within {
        patient.tell(within);
        patient.keeps_factor("all", 1.0);
    }
    patient.tell(&told(1.0, 0.0, 0.0));
    patient.await_factor("all", 0.5);
    for within in &within {
        // What was told before may be looked at once more.
        patient.tell(within);
        patient.keeps_factor("all", 0.5);
    }
}

/// By 90 % and 110 %, a step each tick, and never beyond the floor or the whole.
#[test]
fn it_goes_step_by_step() {
    let rules =
        "[[rule]]\nname = 'r'\nlimits = ['10/day']\nadaptive = { cpu = 'off', tick = '80ms' }";
    let patient = Patient::by(rules);
    let follow = |errors: u32, steps: &[f64]| {
        let (begun, mut seen) = (Instant::now(), Vec::new());
        patient.tell(&json!({"errors": errors, "for": "1h"}));
        until("the last step", super::SOON, || {
            seen.push(patient.factor("r"));
            (seen.last() == steps.last()).then_some(())
        });
        for seen in seen {
            let is_step = steps.iter().any(|step| (step - seen).abs() < 0.0101);
            assert!(is_step, "{seen} is none of {steps:?}");
        }
        let least = Duration::from_millis(80) * (steps.len() as u32 - 2);
        assert!(begun.elapsed() >= least, "in {:?}, and not {least:?}", begun.elapsed());
    };
    follow(1, &[1.0, 0.9, 0.81, 0.729, 0.6561, 0.590_49, 0.531_441, 0.5]);
    follow(0, &[0.5, 0.55, 0.605, 0.6655, 0.732_05, 0.805_255, 0.885_78, 0.974_358, 1.0]);
}

#[test]
fn the_floor_is_as_it_is_said() {
    let rules = "[[rule]]\nname = 'low'\nlimits = ['100/day']\n\
        adaptive = { cpu = 'off', tick = '10ms', floor = '7%' }\n\
        [[rule]]\nname = 'high'\nlimits = ['100/day']\n\
        adaptive = { cpu = 'off', tick = '10ms', floor = '93%' }\n";
    let patient = Patient::by(rules);
    patient.tell(&json!({"errors": 1, "for": "1h"}));
    patient.await_factor("low", 0.07);
    // They are told one after the other, and each has its own ticks.
    patient.await_factor("high", 0.93);
    let answer = patient.look();
    let limits = [0, 1].map(|nth| answer.json()["policies"][nth]["limit"].as_u64().unwrap());
    assert_eq!(limits, [7, 93], "{answer:?}");
    patient.keeps_factor("low", 0.07);
}

/// Each looks at what it names.
#[test]
fn processors_that_a_rule_does_not_look_at_are_no_stress() {
    let patient = Patient::by(&super::quick("r", "limits = ['10/day']"));
    patient.tell(&json!({"cpu": 1, "for": "1h"}));
    patient.keeps_factor("r", 1.0);
}

#[test]
fn errors_that_a_rule_does_not_look_at_are_no_stress() {
    let rules = "[[rule]]\nname = 'r'\nlimits = ['10/day']\n\
        adaptive = { cpu = 'off', errors = 'off', latency = '1s', tick = '10ms' }";
    let patient = Patient::by(rules);
    patient.tell(&json!({"errors": 1, "for": "1h"}));
    patient.keeps_factor("r", 1.0);
}

#[test]
fn slow_answers_are_no_stress_to_a_rule_without_a_latency() {
    let patient = Patient::by(&super::quick("r", "limits = ['10/day']"));
    patient.tell(&json!({"slow": 1, "for": "1h"}));
    patient.keeps_factor("r", 1.0);
}

/// However busy they are.
#[test]
fn the_machines_processors_are_looked_at_unless_it_is_told() {
    let patient =
        Patient::by("[[rule]]\nname = 'r'\nlimits = ['10/day']\nadaptive = { tick = '10ms' }\n");
    let cpu = || patient.health()["adaptive"][0]["cpu"].as_f64();
    let measured = until("a look at them", super::SOON, cpu);
    assert!((0.0..=1.0).contains(&measured), "{measured}");
    // Until it is seen, and only then for a moment: nobody may be in time to see that.
    patient.tell(&json!({"cpu": 0.4321, "for": "1h"}));
    until("what is told", super::SOON, || (cpu() == Some(0.4321)).then_some(()));
    patient.tell(&json!({"cpu": 0.4321, "for": "50ms"}));
    until("a look at them again", super::SOON, || (cpu() != Some(0.4321)).then_some(()));
}

/// Whatever the machine does meanwhile: nobody has told, and what is not known is healthy.
#[test]
fn what_is_not_known_is_healthy() {
    let patient = Patient::by(&super::quick("r", "limits = ['10/day']"));
    patient.keeps_factor("r", 1.0);
    patient.suffers();
    patient.tell(&json!({"errors": 1, "for": "50ms"}));
    patient.await_factor("r", 1.0);
    let health = patient.health();
    assert!(health["adaptive"][0]["errors"].is_null(), "{health}");
}
