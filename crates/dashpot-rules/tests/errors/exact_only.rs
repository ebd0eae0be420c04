//! Limits that can only be kept to exactly.

use super::errors;

/// Each of these is told where `consistency` is written, with the reason.
#[track_caller]
fn refused_at_consistency(rule: &str, reason: &str) {
    for consistency in ["leased", "approximate"] {
        let told = errors(&format!("[[rule]]\nconsistency = '{consistency}'\nname = 'r'\n{rule}"));
        let start = format!("dashpot.toml:2:16: error: {consistency} is for ");
        assert!(told.starts_with(&start), "{rule}: {told}");
        assert!(told.contains(reason), "{rule}: {told}");
        let all = told.lines().filter(|line| line.contains(": error: "));
        assert!({ all }.all(|line| line.starts_with(&start)), "{rule}: {told}");
        let underlined = format!(" {}\n", "^".repeat(consistency.len()));
        assert!((told + "\n").contains(&underlined), "{rule}: not all of the word is underlined");
    }
    let exact = format!("[[rule]]\nconsistency = 'exact'\nname = 'r'\n{rule}");
    dashpot_rules::RuleSet::parse(&exact).unwrap_or_else(|errors| panic!("{errors}"));
}

#[test]
fn a_sliding_log_is_exact() {
    refused_at_consistency("limits = ['5/s']\nalgorithm = 'sliding-log'", "sliding-log");
}

#[test]
fn permits_are_exact() {
    refused_at_consistency("limits = ['5 concurrent']\nalgorithm = 'concurrency'", "permits");
    refused_at_consistency("limits = ['10 concurrent']", "permits");
}

#[test]
fn permits_among_other_limits_are_exact() {
    refused_at_consistency("limits = ['100/s', '5 concurrent']", "permits");
    refused_at_consistency("limits = ['5 concurrent', '100/s']", "permits");
    refused_at_consistency("limits = ['unlimited', '5 concurrent']", "permits");
}

#[test]
fn a_queue_is_exact() {
    let queue = "limits = ['5/s']\nalgorithm = 'leaky-bucket'\nqueue =";
    refused_at_consistency(&format!("{queue} 7"), "queue");
    refused_at_consistency(&format!("{queue} 7\nundelayed = 3"), "queue");
    refused_at_consistency(&format!("{queue} 0"), "queue");
}

#[test]
fn one_of_several_limits_is_enough_to_be_wrong() {
    refused_at_consistency("limits = ['5/s', '50/min']\nalgorithm = 'sliding-log'", "sliding-log");
}

#[test]
fn what_is_wrong_with_one_tier_is_told() {
    let file = |tiers: &str| format!("{tiers}\n[identity]\ndefault_tier = 'free'\n");
    refused_at_consistency(
        &file("tiers.free = '5/s'\ntiers.pro = ['50/s', '5 concurrent']"),
        "permits",
    );
    refused_at_consistency(
        &file("algorithm = 'sliding-log'\ntiers.free = '5/s'\ntiers.pro = '50/s'"),
        "sliding-log",
    );
}

#[test]
fn weights_make_nothing_right() {
    let weight = "[[priority]]\nname = 'pay'\nmatch.path = '/pay'\nweight = 10\n";
    refused_at_consistency(
        &format!("limits = ['5/s']\nalgorithm = 'sliding-log'\n{weight}"),
        "sliding-log",
    );
    refused_at_consistency(&format!("limits = ['5 concurrent']\n{weight}"), "permits");
}

#[test]
fn in_memory_it_is_wrong_all_the_same() {
    for store in ["", "[store]\nurl = 'redis://127.0.0.1'\n"] {
        let rule = "[[rule]]\nname = 'r'\nlimits = '5 concurrent'\nconsistency = 'leased'\n";
        let told = errors(&format!("{rule}{store}"));
        assert!(told.starts_with("dashpot.toml:4:16: error: leased is for"), "{told}");
    }
}
