//! What is advised on rules about the service, and what is not.

use dashpot_rules::RuleSet;

fn advice(file: &str) -> Vec<String> {
    let set = RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}"));
    set.advice().iter().map(|problem| problem.message().to_owned()).collect()
}

/// A file that is beyond reproach.
const SOUND: &str = "
[[rule]]
name = 'api'
by = 'api_key | user | ip'
limits = '100/min'
[[rule]]
name = 'login'
match.path = '/login'
by = 'ip'
limits = '5/5min'
";

#[test]
fn a_capacity_beside_sound_rules_is_sound() {
    assert_eq!(advice(SOUND), [""; 0]);
    for rest in [
        "capacity = { limit = 20 }",
        "capacity = { limit = 20, latency = '250ms' }",
        "capacity = { limit = 20 }\nclasses = { normal = '80%', background = '50%' }",
        "limits = '1000 concurrent'\nclasses = { normal = '80%', background = '50%' }",
        "by = 'user | ip'\nlimits = '100/s'\nadaptive = {}",
    ] {
        let file = format!("{SOUND}[[rule]]\nname = 'worker'\n{rest}\n");
        assert_eq!(advice(&file), [""; 0], "{rest}");
    }
}

/// The page that explains it is no bad example.
#[test]
fn no_rule_of_the_page_is_said_to_be_useless() {
    let page = include_str!("../../../../docs/overload.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let told = advice(example.expect("an example"));
    assert!(!told.iter().any(|message| message.contains("never denies")), "{told:?}");
}

#[test]
fn a_class_that_a_caller_can_choose_is_advised_against() {
    let told = |matches: &str, class: &str| {
        let file = format!("{SOUND}[[priority]]\nname = 'p'\nmatch.{matches}\nclass = '{class}'\n");
        advice(&file).iter().any(|message| message.contains("and so this class"))
    };
    assert!(told("header.x-vip = 'yes'", "critical"));
    assert!(!told("header.x-batch = 'yes'", "background"), "who says so gains nothing");
    assert!(!told("path = '/pay'", "critical"));
    assert!(!told("fact.user = 'bank'", "critical"));
}

#[test]
fn a_cost_that_a_class_can_never_pay_is_told() {
    let told = |cost: u64, classes: &str| {
        let limits = format!("limits = '6 concurrent'\ncost = {cost}\nclasses = {{ {classes} }}");
        advice(&format!("{SOUND}[[rule]]\nname = 'worker'\n{limits}\n"))
    };
    let normal = "a cost of 4 never passes for class `normal`, which may fill 3 of `6 concurrent`";
    assert_eq!(told(4, "normal = '50%', background = '50%'"), [normal]);
    assert_eq!(told(3, "normal = '50%', background = '50%'"), [""; 0]);
    let background =
        "a cost of 2 never passes for class `background`, which may fill 1 of `6 concurrent`";
    assert_eq!(told(2, "background = '20%'"), [background]);
}
