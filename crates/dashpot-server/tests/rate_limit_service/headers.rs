//! `response_headers_to_add`: what Envoy is to tell the caller.

use std::time::UNIX_EPOCH;

use crate::door::{Answer, descriptor, request};
use crate::scene::{both, both_by_rules};

const YAML: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: user
    value: alice
    rate_limit: { name: of_alice, unit: day, requests_per_unit: 100 }
  - key: free
    rate_limit: { unlimited: true }
";
const ADDRESS: [(&str, &str); 1] = [("remote_address", "203.0.113.7")];

/// `"NAME";r=LEFT;t=SECONDS`
fn ratelimit(answer: &Answer) -> (String, u64, u64) {
    let value = answer.header("ratelimit").unwrap_or_else(|| panic!("{answer:?}"));
    let parts: Vec<_> = value.split(';').collect();
    let [name, left, seconds] = parts[..] else { panic!("{value}") };
    let number = |part: &str, prefix| part.strip_prefix(prefix).unwrap().parse().unwrap();
    (name.trim_matches('"').to_owned(), number(left, "r="), number(seconds, "t="))
}

fn names(answer: &Answer) -> Vec<String> {
    let mut names: Vec<_> = answer.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
    names.sort();
    names
}

#[test]
fn the_draft_s_unless_it_is_told_otherwise() {
    both(YAML, &[], |scene| {
        for left in [1, 0] {
            let answer = scene.hit("edge", &ADDRESS);
            answer.passes(left);
            assert_eq!(names(&answer), ["ratelimit", "ratelimit-policy"]);
            let policy = answer.header("ratelimit-policy");
            assert_eq!(policy, Some(r#""edge.remote_address";q=2;w=3600"#));
            let (name, told, seconds) = ratelimit(&answer);
            assert_eq!((name.as_str(), told), ("edge.remote_address", u64::from(left)));
            assert_eq!(Some(seconds), answer.status().reset, "{answer:?}");
        }
        let answer = scene.hit("edge", &ADDRESS);
        assert_eq!(names(&answer), ["ratelimit", "ratelimit-policy", "retry-after"]);
        let (name, left, seconds) = ratelimit(&answer);
        assert_eq!((name.as_str(), left), ("edge.remote_address", 0));
        let retry: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert_eq!([Some(retry), Some(seconds)], [answer.status().reset; 2], "{answer:?}");
        assert!((1..=3600).contains(&retry), "{retry}");
    });
}

#[test]
fn several_limits_are_all_told_and_one_is_the_closest() {
    both(YAML, &[], |scene| {
        let asked = request("edge", &[descriptor(&[("user", "alice")]), descriptor(&ADDRESS)]);
        for (left, over) in [(1, false), (0, false), (0, true)] {
            let answer = scene.ask(&asked);
            assert_eq!(answer.over, over);
            let policy = answer.header("ratelimit-policy").unwrap();
            assert!(policy.contains(r#""edge.remote_address";q=2;w=3600"#), "{policy}");
            assert!(policy.contains(r#""edge.user_alice";q=100;w=86400"#), "{policy}");
            let (name, told, _) = ratelimit(&answer);
            assert_eq!((name.as_str(), told), ("edge.remote_address", left), "{answer:?}");
            assert_eq!(answer.header("retry-after").is_some(), over, "{answer:?}");
        }
    });
}

#[test]
fn without_a_limit_there_is_nothing_to_tell() {
    both(YAML, &[], |scene| {
        for answer in [
            scene.hit("edge", &[("unheard", "of")]),
            scene.hit("nowhere", &ADDRESS),
            scene.hit("edge", &[("free", "")]),
        ] {
            assert_eq!(answer.header("ratelimit"), None, "{answer:?}");
            assert_eq!(answer.header("retry-after"), None, "{answer:?}");
        }
    });
}

#[test]
fn the_rule_file_says_otherwise() {
    let styled = |styles: &str| format!("[headers]\nstyles = [{styles}]\n");
    both_by_rules(&styled("'x-ratelimit'"), YAML, |scene| {
        let answer = scene.hit("edge", &ADDRESS);
        let expected = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
        assert_eq!(names(&answer), expected);
        assert_eq!(answer.header("x-ratelimit-limit"), Some("2"));
        assert_eq!(answer.header("x-ratelimit-remaining"), Some("1"));
        let at: u64 = answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!((now..=now + 3601).contains(&at), "{at} is a time since 1970");
        scene.hit("edge", &ADDRESS).passes(0);
        let denied = scene.hit("edge", &ADDRESS);
        assert_eq!(names(&denied), [&["retry-after"][..], &expected[..]].concat());
    });
    both_by_rules(&styled("'ietf', 'x-ratelimit'"), YAML, |scene| {
        let answer = scene.hit("edge", &ADDRESS);
        assert_eq!(answer.header("x-ratelimit-limit"), Some("2"));
        assert_eq!(ratelimit(&answer).1, 1);
    });
    both_by_rules(&styled("'draft-07'"), YAML, |scene| {
        let answer = scene.hit("edge", &ADDRESS);
        assert_eq!(answer.header("ratelimit-policy"), Some("2;w=3600"));
        let told = answer.header("ratelimit").unwrap();
        assert!(told.starts_with("limit=2, remaining=1, reset="), "{told}");
    });
    both_by_rules(&styled("'none'"), YAML, |scene| {
        for _ in 0..2 {
            assert_eq!(names(&scene.hit("edge", &ADDRESS)), [""; 0]);
        }
        assert_eq!(names(&scene.hit("edge", &ADDRESS)), ["retry-after"]);
    });
}

#[test]
fn of_rules_as_well() {
    let rules = "[[rule]]\nname = 'api'\nby = ['fact:user']\nlimits = ['3/h', '50/day']\n\
        algorithm = 'fixed-window'\n";
    both_by_rules(rules, "", |scene| {
        let answer = scene.hit("any", &[("user", "alice")]);
        let policy = answer.header("ratelimit-policy").unwrap();
        assert_eq!(policy, r#""api-h";q=3;w=3600, "api-day";q=50;w=86400"#);
        let (name, left, _) = ratelimit(&answer);
        assert_eq!((name.as_str(), left), ("api-h", 2));
        scene.cost("any", &[("user", "alice")], 2).passes(0);
        assert!(scene.hit("any", &[("user", "alice")]).header("retry-after").is_some());
    });
}

/// A cost that never fits is denied, and no wait would do.
#[test]
fn more_than_the_limit_is_not_worth_waiting_for() {
    both(YAML, &[], |scene| {
        let answer = scene.cost("edge", &ADDRESS, 3);
        answer.is_denied(2);
        assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    });
}
