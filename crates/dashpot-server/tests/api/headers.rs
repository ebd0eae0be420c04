//! The rate-limit headers of a check.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::support::{Answer, Server, fields};

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn number(answer: &Answer, name: &str) -> u64 {
    let value = answer.header(name).unwrap_or_else(|| panic!("no {name}: {answer:?}"));
    value.parse().unwrap_or_else(|_| panic!("{name}: {answer:?}"))
}

#[test]
fn the_ietf_fields_say_how_it_stands() {
    let server = Server::start(&[]);
    let ask = json!({"key": "alice", "limit": "2/min"});
    for left in [1, 0] {
        let answer = server.check(&ask).allowed();
        let policy = fields::list(answer.header("ratelimit-policy").unwrap());
        assert_eq!((policy.len(), policy[0].number("q"), policy[0].number("w")), (1, 2, 60));
        let limit = fields::list(answer.header("ratelimit").unwrap());
        assert_eq!((limit.len(), limit[0].number("r")), (1, left), "{answer:?}");
        assert_eq!(limit[0].name, policy[0].name);
        // One comes back in 30 seconds: more than r in t would promise more than the rate.
        assert!((25..=30).contains(&limit[0].number("t")), "{answer:?}");
    }
    let answer = server.check(&ask).denied("limited");
    let limit = fields::list(answer.header("ratelimit").unwrap());
    assert_eq!(limit[0].number("r"), 0);
    assert_eq!(limit[0].number("t"), number(&answer, "retry-after"), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
}

#[test]
fn all_limits_are_listed_and_the_tightest_one_speaks() {
    let server = Server::by("[[rule]]\nname = 'api'\nlimits = ['10/min', '1000/day']");
    let answer = server.request(&json!({"path": "/"})).allowed();
    let policies = fields::list(answer.header("ratelimit-policy").unwrap());
    let seen: Vec<_> =
        policies.iter().map(|p| (p.name.as_str(), p.number("q"), p.number("w"))).collect();
    assert_eq!(seen, [("api-min", 10, 60), ("api-day", 1000, 86_400)]);
    let limit = fields::list(answer.header("ratelimit").unwrap());
    assert_eq!((limit[0].name.as_str(), limit[0].number("r")), ("api-min", 9), "{answer:?}");
    let names: Vec<_> = (0..2).map(|n| answer.policy(n)["policy"].clone()).collect();
    assert_eq!(names, ["api-min", "api-day"]);
}

#[test]
fn nothing_left_is_told_before_hardly_anything_left() {
    let server = Server::start(&[]);
    let checks = json!([
        {"key": "a", "limit": "10M/day", "cost": 9_999_999},
        {"key": "b", "limit": "1/day"},
    ]);
    let answer = server.check(&json!({ "checks": checks })).allowed();
    let policy = fields::list(answer.header("ratelimit-policy").unwrap());
    assert_eq!(policy[0].number("q"), 1, "{answer:?}");
    assert_eq!(fields::list(answer.header("ratelimit").unwrap())[0].number("r"), 0, "{answer:?}");
}

#[test]
fn what_has_no_limit_hides_none() {
    let server = Server::start(&[]);
    let checks = json!([
        {"key": "a", "limit": "unlimited", "cost": 0},
        {"key": "a", "limit": "10/s", "cost": 0},
    ]);
    let answer = server.check(&json!({ "checks": checks })).allowed();
    let policy = fields::list(answer.header("ratelimit-policy").expect("a policy"));
    assert_eq!(policy[0].number("q"), 10, "{answer:?}");
}

#[test]
fn permits_are_told_as_such() {
    let server = Server::start(&[]);
    let ask = json!({"key": "a", "limit": "2 concurrent", "reserve": true});
    let answer = server.check(&ask).allowed();
    let policy = fields::list(answer.header("ratelimit-policy").unwrap());
    assert_eq!(policy[0].text("qu"), Some("concurrent-requests"), "{answer:?}");
    assert_eq!(policy[0].number("q"), 2);
    assert!(!policy[0].has("w"), "there is no window: {answer:?}");
    assert_eq!(fields::list(answer.header("ratelimit").unwrap())[0].number("r"), 1);
}

#[test]
fn numbers_too_long_for_the_field_are_clamped() {
    let server = Server::start(&[]);
    let ask = json!({"key": "a", "limit": "9007199254740993/year"});
    let answer = server.check(&ask).allowed();
    for item in fields::list(answer.header("ratelimit-policy").unwrap()) {
        assert_eq!(item.number("q"), 999_999_999_999_999, "{answer:?}");
    }
    for item in fields::list(answer.header("ratelimit").unwrap()) {
        item.number("r");
        item.number("t");
    }
}

#[test]
fn the_rule_file_chooses_x_ratelimit() {
    let rules = "[headers]\nstyles = ['ietf', 'x-ratelimit']\n";
    let server = Server::by(&format!("{rules}[[rule]]\nname = 'all'\nlimits = ['2/min']"));
    let before = now();
    for answer in [
        server.request(&json!({"path": "/"})).allowed(),
        server.check(&json!({"key": "alice", "limit": "2/min"})).allowed(),
    ] {
        assert_eq!(number(&answer, "x-ratelimit-limit"), 2);
        assert_eq!(number(&answer, "x-ratelimit-remaining"), 1);
        let whole = answer.policy(0)["reset_after"].as_f64().unwrap();
        let reset = number(&answer, "x-ratelimit-reset") as f64;
        assert!(reset >= before + whole - 0.1 && reset <= now() + whole + 1.1, "{answer:?}");
        assert!(answer.header("ratelimit").is_some(), "{answer:?}");
    }
}

#[test]
fn older_styles_and_none() {
    let by = |styles: &str| {
        let server = Server::by(&format!("[headers]\nstyles = [{styles}]"));
        let ask = json!({"key": "alice", "limit": "1/min"});
        (server.check(&ask).allowed(), server.check(&ask).denied("limited"))
    };
    let (allowed, denied) = by("'draft-06'");
    assert_eq!(number(&allowed, "ratelimit-limit"), 1);
    assert_eq!(number(&allowed, "ratelimit-remaining"), 0);
    assert_eq!(number(&allowed, "ratelimit-reset"), 60);
    assert_eq!(allowed.header("ratelimit-policy"), Some("1;w=60"));
    assert_eq!(number(&denied, "ratelimit-reset"), number(&denied, "retry-after"));

    let (allowed, _) = by("'draft-07'");
    assert_eq!(allowed.header("ratelimit"), Some("limit=1, remaining=0, reset=60"));
    assert_eq!(allowed.header("ratelimit-policy"), Some("1;w=60"));

    let (allowed, denied) = by("'none'");
    for answer in [&allowed, &denied] {
        assert!(!answer.headers.iter().any(|(name, _)| name.contains("ratelimit")), "{answer:?}");
    }
    assert!((50..=60).contains(&number(&denied, "retry-after")), "{denied:?}");
}

#[test]
fn jitter_only_adds() {
    let server = Server::by("[headers]\njitter = '1000s'");
    let ask = json!({"key": "alice", "limit": "1/min"});
    server.check(&ask).allowed();
    let waits: Vec<u64> =
        (0..20).map(|_| number(&server.check(&ask).denied("limited"), "retry-after")).collect();
    assert!(waits.iter().all(|wait| (50..=1_060).contains(wait)), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait != waits[0]), "nothing was added: {waits:?}");
}
