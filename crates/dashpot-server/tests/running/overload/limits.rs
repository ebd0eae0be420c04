//! What a factor does to each kind of limit, and what callers are told.

use serde_json::{Value, json};

use super::{ASKED, Patient, QUICK, limit, passed, quick};

/// Half of it, however it is counted.
#[test]
fn every_kind_of_limit_is_lower_by_it() {
    for (algorithm, limits, half) in [
        ("token-bucket", "10/day", 5),
        ("token-bucket", "10/day burst 30", 15),
        ("fixed-window", "10/day", 5),
        ("fixed-window", "11/day", 5),
        ("sliding-log", "10/day", 5),
        ("sliding-window", "10/day", 5),
        ("token-bucket", "2/day", 1),
        ("token-bucket", "1/day", 1),
        ("fixed-window", "1/day", 1),
        ("sliding-log", "1/day", 1),
        ("sliding-window", "1/day", 1),
    ] {
        let rule = format!("limits = ['{limits}']\nalgorithm = '{algorithm}'");
        let patient = Patient::by(&quick("r", &rule));
        let whole = limit(&patient.look());
        patient.suffers();
        let answer = patient.look();
        assert_eq!(limit(&answer), half, "{algorithm}, {limits}: {answer:?}");
        assert_eq!(answer.remaining(), half, "{algorithm}, {limits}: {answer:?}");
        let policy = answer.header("ratelimit-policy").unwrap();
        assert!(policy.starts_with(&format!("\"r\";q={half};w=")), "{algorithm}: {policy}");
        assert_eq!(
            passed(&mut patient.client(), ASKED, 20),
            half as usize,
            "{algorithm}, {limits}"
        );
        patient.recovers();
        assert_eq!(limit(&patient.look()), whole, "{algorithm}, {limits}");
    }
}

#[test]
fn permits_are_fewer_by_it() {
    let patient = Patient::by(&quick("r", "limits = ['5 concurrent']"));
    patient.suffers();
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    assert_eq!(limit(&patient.client().check(asked)), 2);
    assert_eq!(passed(&mut patient.client(), asked, 9), 1);
    patient.recovers();
    assert_eq!(passed(&mut patient.client(), asked, 9), 3, "five in all");
    let patient = Patient::by(&quick("r", "limits = ['1 concurrent']"));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), asked, 9), 1, "never below one");
}

/// All limits of the rule, and none of another.
#[test]
fn all_limits_of_the_rule_are_lower_and_nothing_else() {
    let rules = quick("two", "limits = ['10/min', '100/day']")
        + "[[rule]]\nname = 'fixed'\nlimits = ['10/min', '10 concurrent']\n";
    let patient = Patient::by(&rules);
    patient.suffers();
    let asked = r#"{"request":{"path":"/"},"reserve":true}"#;
    let answer = patient.client().check(asked).json();
    let told = |policy: &str| {
        let policies = answer["policies"].as_array().unwrap();
        policies.iter().find(|told| told["policy"] == policy).unwrap()["limit"].clone()
    };
    assert_eq!([told("two-min"), told("two-day")], [json!(5), json!(50)], "{answer}");
    assert_eq!(told("fixed-min"), json!(10), "{answer}");
    // Nor what is made up on the spot.
    let made_up = r#"{"key":"two","limit":"10/min"}"#;
    assert_eq!(limit(&patient.client().check(made_up)), 10);
}

#[test]
fn tiers_and_weights_are_lower_by_it() {
    let rules = format!(
        "[[priority]]\nname = 'heavy'\nmatch = {{ path = '/heavy' }}\nweight = 3\n\
         [[priority]]\nname = 'free'\nmatch = {{ path = '/free' }}\nweight = 'unlimited'\n\
         [identity]\ndefault_tier = 'small'\n\
         [[rule]]\nname = 'r'\n{QUICK}tiers.small = ['10/day']\ntiers.large = ['50/day']\n"
    );
    let patient = Patient::by(&rules);
    patient.suffers();
    let of = |path: &str, tier: &str| {
        let asked = json!({"request": {"path": path, "tier": tier}, "cost": 0});
        limit(&patient.client().check(&asked.to_string()))
    };
    assert_eq!([of("/", "small"), of("/", "large")], [5, 25]);
    assert_eq!([of("/heavy", "small"), of("/heavy", "large")], [15, 75]);
    let free = r#"{"request":{"path":"/free"}}"#;
    assert_eq!(passed(&mut patient.client(), free, 40), 40, "nothing holds it up");
    let count = r#"dashpot_priority_allowed_total{priority="free"}"#;
    assert_eq!(patient.service.metric(count), 40.0);
}

/// A unit of ten in a hundred seconds comes back in ten, and of five in twenty.
#[test]
fn waits_are_told_by_the_factor_as_it_is_now() {
    let patient = Patient::by(&quick("r", "limits = ['10/100s']"));
    let wait = || {
        let denied = patient.client().check(r#"{"request":{"path":"/"}}"#);
        assert!(!denied.allowed());
        let exact = denied.json()["policies"][0]["retry_after"].as_f64().unwrap();
        let header: f64 = denied.header("retry-after").unwrap().parse().unwrap();
        assert!(header >= exact && header < exact + 1.0, "{denied:?}");
        exact
    };
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 5), 5);
    let lower = wait();
    assert!((15.0..=20.0).contains(&lower), "{lower}");
    patient.recovers();
    let whole = wait();
    assert!((5.0..=10.0).contains(&whole), "{whole}");
    patient.suffers();
    let lower = wait();
    assert!((15.0..=20.0).contains(&lower), "{lower}");
}

/// Nobody knows when there is more of it.
#[test]
fn what_only_the_whole_limit_lets_pass_is_denied_without_a_wait() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let rule = format!("limits = ['10/day']\nalgorithm = '{algorithm}'");
        let patient = Patient::by(&quick("r", &rule));
        patient.suffers();
        let denied = patient.client().check(r#"{"request":{"path":"/"},"cost":6}"#);
        assert_eq!(denied.status, 429, "{algorithm}: {denied:?}");
        assert_eq!(denied.header("retry-after"), None, "{algorithm}: {denied:?}");
        assert_eq!(denied.json()["policies"][0]["retry_after"], Value::Null, "{algorithm}");
        assert_eq!(patient.look().remaining(), 5, "{algorithm}: it took nothing");
        patient.recovers();
        let asked = r#"{"request":{"path":"/"},"cost":6}"#;
        assert!(patient.client().check(asked).allowed(), "{algorithm}");
    }
}

#[test]
fn a_key_is_shown_as_it_is_counted() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']"));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 5);
    let shown = |what: &str| {
        let answer = patient.client().post(&format!("/v1/keys/{what}"), ASKED);
        assert_eq!(answer.status, 200, "{answer:?}");
        (limit(&answer), answer.remaining())
    };
    assert_eq!(shown("peek"), (5, 0));
    assert_eq!(shown("reset"), (5, 5));
}

/// In shadow it is counted against the lower limit, and nobody is denied.
#[test]
fn a_rule_in_shadow_denies_nobody() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']\nshadow = true"));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 9);
    assert_eq!(patient.service.metric(r#"dashpot_rule_shadow_denied_total{rule="r"}"#), 4.0);
}
