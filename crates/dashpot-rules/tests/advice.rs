//! What people regret later is pointed out before: each pitfall, and the nearest file without it.

use dashpot_rules::{RuleSet, Severity, Source};

use crate::common::temp_dir::TempDir;

/// The advice on a file that is none but advised on.
fn advice(file: &str) -> Vec<String> {
    let set = RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}"));
    let lines = file.split('\n').count();
    for problem in set.advice() {
        assert_eq!(problem.severity(), Severity::Advice);
        assert!((1..=lines).contains(&problem.place().line), "{problem}");
        assert!(problem.to_string().contains(": advice: "), "{problem}");
    }
    set.advice().iter().map(|problem| problem.message().to_owned()).collect()
}

fn rule(name: &str, rest: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{rest}\n")
}

/// The first file is advised on in these words, the second is not.
#[track_caller]
fn told_apart(words: &str, with: &str, without: &str) {
    let told = |file| advice(file).iter().any(|message| message.contains(words));
    assert!(told(with), "nothing about {words:?}: {:?}", advice(with));
    assert!(!told(without), "still about {words:?}: {:?}", advice(without));
}

/// A rule that is beyond reproach, so that others are not alone.
fn sound() -> String {
    rule("sound", "by = 'api_key | user | ip'\nlimits = '100/min'")
}

#[test]
fn a_sound_file_is_not_advised_on() {
    let file = sound()
        + &rule("login", "match.path = '/login'\nby = 'ip'\nlimits = '5/5min'")
        + &rule("email", "match.path = '/login'\nby = 'json:email'\nlimits = '10/h'");
    assert_eq!(advice(&file), [""; 0]);
}

#[test]
fn the_example_of_the_contract_is_a_good_file() {
    let dir = TempDir::new();
    dir.write("keys.toml", &format!("{} = {{ user = 'alice', tier = 'pro' }}", "ab".repeat(32)));
    let example = vec![Source::new("dashpot.toml", include_str!("common/example.toml"))];
    let set =
        RuleSet::from_sources(example, dir.path()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(set.rules().len(), 4);
    let told: Vec<_> = set.advice().iter().map(ToString::to_string).collect();
    assert_eq!(told, [""; 0]);
}

#[test]
fn an_empty_file_limits_nothing() {
    told_apart("there are no rules", "", &sound());
}

#[test]
fn only_addresses() {
    let other = rule("reads", "match.path = '/a/*'\nby = ['ip', 'path']\nlimits = '5/s'");
    let by = |by: &str| other.clone() + &rule("all", &format!("by = '{by}'\nlimits = '50/s'"));
    told_apart("counted by address only", &by("ip"), &by("user | ip"));
}

#[test]
fn only_logins() {
    let login = rule("login", "match.path = '/login'\nby = 'ip'\nlimits = '5/5min'");
    told_apart("only logins are limited", &login, &(login.clone() + &sound()));
}

#[test]
fn only_global_limits() {
    let all = rule("all", "limits = '1000/s'") + &rule("a", "match.path = '/a'\nlimits = '5/s'");
    told_apart("shared by all callers", &all, &(all.clone() + &sound()));
}

#[test]
fn one_limit_everywhere() {
    let writes = rule("writes", "match.method = 'POST'\nby = 'user | ip'\nlimits = '5/s'");
    told_apart("one limit for everything", &sound(), &(sound() + &writes));
}

#[test]
fn logins_that_are_not_strict() {
    let login = |limit: &str| {
        sound() + &rule("login", &format!("match.path = '/login'\nby = 'ip'\nlimits = '{limit}'"))
    };
    told_apart("nothing here is strict", &login("60/min"), &login("5/5min"));
}

#[test]
fn logins_are_strict_if_another_rule_is() {
    let login = sound() + &rule("login", "match.path = '/login'\nby = 'ip'\nlimits = '60/min'");
    let strict = "match.path = '/login'\nby = 'json:email'\nlimits = '10/h'";
    let with = |rest: &str| login.clone() + &rule("strict", &format!("{strict}{rest}"));
    told_apart("nothing here is strict", &with("\nshadow = true"), &with(""));
}

#[test]
fn auth_routes_without_a_rule_of_their_own() {
    let told = advice(&(sound() + &rule("w", "match.path = '/w'\nby = 'ip'\nlimits = '5/s'")));
    assert!(told.iter().any(|message| message.contains("login")), "{told:?}");
    let about = "no rule is about logins";
    let file = |rest: &str| sound() + &rule("w", rest);
    let other = file("match.path = '/w'\nby = 'ip'\nlimits = '5/s'");
    for silent in [
        "match.path = '/login'\nby = 'ip'\nlimits = '5/5min'",
        "match.path = '/api/v1/auth/*'\nby = 'ip'\nlimits = '5/5min'",
        "match.method = 'POST'\nby = 'ip'\nlimits = '5/min'",
    ] {
        told_apart(about, &other, &file(silent));
    }
    // Rules for some routes say nothing of others.
    let api = rule("api", "match.path = '/api/*'\nby = 'user | ip'\nlimits = '5/s'");
    told_apart(
        about,
        &other,
        &(api + &rule("w", "match.method = 'GET'\nby = 'ip'\nlimits = '5/s'")),
    );
    // Said already.
    told_apart(about, &other, &sound());
}

#[test]
fn long_bans() {
    let file = |limit: &str, algorithm: &str| {
        sound() + &rule("r", &format!("by = 'ip'\nlimits = '{limit}'\nalgorithm = '{algorithm}'"))
    };
    told_apart("that is a ban", &file("5/day", "sliding-log"), &file("5/5min", "sliding-log"));
    told_apart("that is a ban", &file("5/day", "sliding-log"), &file("5/day", "token-bucket"));
}

#[test]
fn fixed_windows_that_invite_a_stampede() {
    let file = sound() + &rule("r", "by = 'ip'\nlimits = '500/h'\nalgorithm = 'fixed-window'");
    told_apart("come back at its end", &file, &(file.clone() + "[headers]\njitter = '5s'"));
    told_apart("come back at its end", &file, &file.replace("fixed", "sliding"));
}

#[test]
fn keys_that_a_caller_can_choose() {
    let chosen = rule("r", "match.path = '/api/*'\nby = 'header:x-api-key'\nlimits = '5/s'");
    let login = rule("login", "match.path = '/login'\nby = 'ip'\nlimits = '5/5min'");
    let cover = |path: &str| {
        let cover = rule("cover", &format!("match.path = '{path}'\nby = 'ip'\nlimits = '50/s'"));
        chosen.clone() + &login + &cover
    };
    told_apart("a caller can choose `header:x-api-key`", &cover("/web/*"), &cover("/api/*"));
    told_apart("a caller can choose", &(chosen.clone() + &login), &cover("/*"));
    // What is believed is no choice.
    told_apart("a caller can choose", &chosen, &chosen.replace("header:x-api-key", "api_key | ip"));
}

#[test]
fn keys_that_a_caller_can_choose_are_not_covered_by_a_shadow() {
    let chosen = rule("r", "by = 'query:id'\nlimits = '5/s'");
    let cover = rule("cover", "by = 'ip'\nlimits = '50/s'");
    let shadow = cover.clone() + "shadow = true\n";
    told_apart("a caller can choose", &(chosen.clone() + &shadow), &(chosen.clone() + &cover));
}

#[test]
fn alternatives_that_begin_with_what_a_caller_can_choose() {
    let file = |by: &str| {
        rule("r", &format!("by = '{by}'\nlimits = '5/s'"))
            + &rule("w", "match.path = '/w'\nby = 'user'\nlimits = '5/s'")
    };
    told_apart("a caller can choose", &file("header:x-id | ip"), &file("user | ip"));
}

#[test]
fn weights_that_a_caller_can_choose() {
    let file = |matches: &str, weight: &str| {
        sound() + &format!("[[priority]]\nname = 'p'\nmatch.{matches} = '/'\nweight = {weight}\n")
    };
    told_apart("and so this weight", &file("header.x-vip", "10"), &file("path", "10"));
    told_apart(
        "and so this weight",
        &file("header.x-vip", "'unlimited'"),
        &file("header.x-vip", "0.5"),
    );
}

#[test]
fn nobody_is_believed() {
    let file = |more: &str| sound() + &format!("[identity]\nuser = 'header:x-user-id'\n{more}");
    told_apart("believed only from a trusted proxy", &file(""), &file("hops = 1"));
    told_apart("believed only", &file(""), &file("trusted_proxies = '10.0.0.0/8'"));
}

#[test]
fn nobody_is_believed_if_the_list_of_proxies_is_empty() {
    let file = |list: &str| {
        sound() + &format!("[identity]\nuser = 'header:x-user-id'\ntrusted_proxies = {list}")
    };
    told_apart("believed only", &file("[]"), &file("['10.0.0.0/8']"));
}

#[test]
fn everybody_is_believed() {
    let file = |list: &str| sound() + &format!("[identity]\ntrusted_proxies = {list}");
    for all in [
        "'0.0.0.0/0'",
        "['10.0.0.0/8', '::/0']",
        "'::ffff:0.0.0.0/96'",
        "['0.0.0.0/1', '128.0.0.0/1']",
    ] {
        told_apart("everybody is believed", &file(all), &file("['10.0.0.0/8', '::1/128']"));
    }
}

#[test]
fn costs_that_never_pass_with_a_weight() {
    let file = |priority: &str, matches: &str, cost: u32| {
        format!("[[priority]]\nname = 'all'\n{priority}\nweight = 0.5\n")
            + &rule("r", &format!("{matches}\nlimits = ['5/min', '100/day']\ncost = {cost}"))
    };
    let told = |priority: &str, matches: &str| {
        let words = "a cost of 3 never passes with priority `all`, which makes `2/min` of `5/min`";
        advice(&file(priority, matches, 3)).iter().any(|message| message == words)
    };
    told_apart("never passes with priority `all`", &file("", "", 3), &file("", "", 2));
    assert!(told("match.path = '/a/*'", "match.path = '/a/b'"));
    assert!(told("match.path = '/{x}/b'", "match.path = '/a/*'"));
    assert!(told("match.path = '/a'", "match.method = 'POST'"));
    assert!(told("match.method = 'GET'", "match.method = 'HEAD'"));
    assert!(told("match.fact.tier = 'pro'", "match.fact.user = '*'"));
    // No request is about both.
    assert!(!told("match.path = '/a/*'", "match.path = '/b'"));
    assert!(!told("match.method = 'GET'", "match.method = 'POST'"));
    assert!(!told("match.host = 'a.com'", "match.host = '*.b.com'"));
    assert!(!told("match.fact.tier = 'pro'", "match.fact.tier = 'free'"));
    assert!(!told("match.fact.user = '*'", "match.without = 'user'"));
}

#[test]
fn rules_that_never_matter() {
    let file = |path: &str| {
        let all = "[[priority]]\nname = 'free'\nmatch.path = '/health/*'\nweight = 'unlimited'\n";
        sound() + all + &rule("r", &format!("match.path = '{path}'\nby = 'ip'\nlimits = '5/s'"))
    };
    told_apart("priority `free` is unlimited here", &file("/health/db"), &file("/db"));
    let percent = |percent: u32| {
        sound() + &rule("r", &format!("by = 'ip'\nlimits = '5/s'\nenforce_percent = {percent}"))
    };
    told_apart("which is nobody", &percent(0), &percent(1));
    let limit = |limit: &str| sound() + &rule("r", &format!("by = 'ip'\nlimits = '{limit}'"));
    told_apart("this never denies", &limit("unlimited"), &limit("5/s"));
    let method = |method: &str| {
        let rest = format!("match.method = '{method}'\nby = 'json:email'\nlimits = '5/s'");
        sound() + &rule("r", &rest)
    };
    told_apart("have no body", &method("GET"), &method("POST"));
}

#[test]
fn tiers_of_keys_that_no_rule_knows() {
    let dir = TempDir::new();
    let file = dir.write(
        "dashpot.toml",
        "[identity]\napi_key = 'header:x-api-key'\napi_keys_file = 'keys'\ndefault_tier = 'free'\n\
         [[rule]]\nname = 'api'\nby = 'api_key | ip'\ntiers.free = '5/s'\ntiers.pro = '50/s'\n",
    );
    let told = |tier: &str| {
        dir.write("keys", &format!("{} = {{ tier = '{tier}' }}", "ab".repeat(32)));
        let set = RuleSet::load(&file).unwrap();
        set.advice().iter().any(|problem| problem.message().contains("keys were handed out for"))
    };
    assert!(told("platinum"));
    assert!(!told("pro"));
}

/// Who can say so of itself is not to be let off for it.
#[test]
fn privileges_of_the_callers_choice_are_advised_against() {
    let advised = |text: &str, part: &str| {
        let rules = RuleSet::parse(text).unwrap();
        rules.advice().iter().any(|advice| advice.message().contains(part))
    };
    let rule = "[[rule]]\nname = 'r'\nby = 'ip'\nlimits = '5/min'\n";
    let allow = |fact: &str| format!("{rule}[allow]\n'{fact}' = 'x'\n");
    assert!(advised(&allow("header:x-internal"), "not to be limited"));
    assert!(!advised(&allow("user"), "not to be limited"));
    let block = |fact: &str| format!("{rule}[block]\n'{fact}' = 'x'\n");
    assert!(advised(&block("json:email"), "too long to be looked into"));
    assert!(!advised(&block("header:user-agent"), "too long to be looked into"));
    let weight = |fact: &str| {
        format!("{rule}[[priority]]\nname = 'p'\nmatch.fact.'{fact}' = 'x'\nweight = 10\n")
    };
    assert!(advised(&weight("query:vip"), "and so this weight"));
    assert!(!advised(&weight("user"), "and so this weight"));
    // A rule that lets off who says nothing, or never denies, covers nobody.
    let covered = |by: &str| {
        let raw = "[[rule]]\nname = 'raw'\nby = 'header:x-api-key'\nlimits = '5/min'\n";
        !advised(&format!("{raw}[[rule]]\nname = 'c'\n{by}\n"), "and so begin anew")
    };
    assert!(covered("by = 'ip'\nlimits = '5/min'"));
    assert!(!covered("by = 'user'\nabsent = 'skip'\nlimits = '5/min'"));
    assert!(!covered("by = 'ip'\nlimits = 'unlimited'"));
}
