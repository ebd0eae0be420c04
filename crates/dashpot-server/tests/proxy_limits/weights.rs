//! Who counts for more: tiers of those who are known, and priorities.

use crate::backend::Backend;
use crate::proxy::Proxy;

/// 127.0.0.1 is a proxy that is trusted; others say what they like.
const TIERS: &str = r#"
[identity]
trusted_proxies = ["127.0.0.1/32"]
user = "header:x-user-id"
tier = "header:x-tier"
default_tier = "free"

[[rule]]
name = "api"
by = ["user | ip"]
tiers.free = ["2/day"]
tiers.pro = ["4/day"]
"#;

#[test]
fn a_tier_is_believed_of_a_trusted_proxy() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, TIERS);
    let of = |user: &str, tier: &str| {
        let (user, tier) = (format!("x-user-id: {user}"), format!("x-tier: {tier}"));
        let lines = [user.as_str(), &tier, "x-forwarded-for: 203.0.113.7"];
        let statuses = proxy.statuses("/", &lines, 6);
        statuses.iter().filter(|status| **status == 200).count()
    };
    assert_eq!(of("alice", "pro"), 4);
    assert_eq!(of("bob", "free"), 2);
    // Who changes tier goes on with what was used.
    assert_eq!(of("bob", "pro"), 2);
    assert_eq!(of("carol", "no-such-tier"), 2, "the usual tier");
}

#[test]
fn nobody_else_names_a_tier_or_a_user() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, TIERS);
    let mut caller = proxy.caller_from(2);
    let mut passed = 0;
    for nth in 0..8 {
        let user = format!("x-user-id: user-{nth}");
        let answer = caller.ask("GET", "/", &[&user, "x-tier: pro"], "");
        passed += usize::from(answer.status == 200);
    }
    assert_eq!(passed, 2, "by its address, and free");
    assert_eq!(backend.count(), 2);
}

const PRIORITIES: &str = r#"
[[priority]]
name = "webhook"
match = { path = "/webhooks/*" }
weight = "unlimited"

[[priority]]
name = "critical"
match = { header = { x-class = "critical" } }
weight = 10

[[priority]]
name = "batch"
match = { header = { x-class = "batch" } }
weight = 0.5

[[rule]]
name = "all"
by = ["ip"]
limits = ["4/day"]
"#;

fn passed(proxy: &Proxy, path: &str, lines: &[&str]) -> usize {
    let statuses = proxy.statuses(path, lines, 50);
    statuses.iter().filter(|status| **status == 200).count()
}

#[test]
fn priorities_multiply_and_have_counters_of_their_own() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, PRIORITIES);
    assert_eq!(passed(&proxy, "/", &["x-class: batch"]), 2);
    assert_eq!(passed(&proxy, "/", &["x-class: critical"]), 40);
    assert_eq!(passed(&proxy, "/", &[]), 4);
    assert_eq!(passed(&proxy, "/webhooks/stripe", &[]), 50, "as many as there are");
    assert_eq!(passed(&proxy, "/webhooks/stripe", &["x-class: batch"]), 50, "the first counts");
    let denied = proxy.caller().ask("GET", "/", &["x-class: batch"], "");
    assert_eq!(denied.header("ratelimit-policy"), Some(r#""all@batch";q=2;w=86400"#));
}

/// A priority holds only if all ways to read a path agree.
#[test]
fn a_path_that_looks_like_a_webhook_is_none() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, PRIORITIES);
    assert_eq!(passed(&proxy, "/webhooks/../api", &[]), 4);
    assert_eq!(passed(&proxy, "/api/../webhooks/a", &[]), 0, "the same four");
}
