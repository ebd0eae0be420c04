//! Trying rules out: in the shadow, and for a part of all callers.

use axum::Router;
use dashpot_rules::LiveRules;

use crate::common::{Server, get, limit, rules, store};

/// A server and the rules it goes by, which know what they denied.
async fn server(text: &str) -> (Server, LiveRules) {
    let live = LiveRules::new(rules(text));
    let app = Router::new().fallback(async || "served");
    (Server::start(app.layer(limit(live.clone(), store().0))).await, live)
}

const SHADOW: &str = "[[rule]]\nname = 'shadow'\nlimits = ['2/min']\nshadow = true\n";
const ENFORCED: &str = "[[rule]]\nname = 'enforced'\nlimits = ['4/min']\n";

fn would_have_denied(live: &LiveRules, name: &str) -> u64 {
    let rules = live.current();
    let rule = rules.rules().iter().find(|rule| rule.name() == name).unwrap();
    rule.tally().would_have_denied()
}

#[tokio::test]
async fn a_shadow_never_denies_and_knows_what_it_would_have_denied() {
    let (server, live) = server(SHADOW).await;
    assert_eq!(get("/").statuses(&server, 10).await, [200; 10]);
    assert_eq!(would_have_denied(&live, "shadow"), 8);
    assert_eq!(live.current().rules()[0].tally().denied(), 0);
    // Callers do not see it.
    let answer = get("/").send(&server).await;
    assert_eq!((answer.get("ratelimit"), answer.get("retry-after")), (None, None));
}

/// Other limiters return at the first shadow, and skip what is enforced.
#[tokio::test]
async fn a_shadow_does_not_hide_rules_that_are_enforced() {
    for text in [format!("{SHADOW}{ENFORCED}"), format!("{ENFORCED}{SHADOW}")] {
        let (server, live) = server(&text).await;
        assert_eq!(get("/").statuses(&server, 6).await, [200, 200, 200, 200, 429, 429]);
        // What was denied anyway is nothing a shadow would have denied.
        assert_eq!(would_have_denied(&live, "shadow"), 2);
        let denied = get("/").send(&server).await;
        assert_eq!(denied.json()["violated-policies"], serde_json::json!(["enforced"]));
        assert_eq!(denied.get("ratelimit-policy"), Some(r#""enforced";q=4;w=60"#));
    }
}

#[tokio::test]
async fn a_shadow_that_insists_on_a_fact_refuses_nobody() {
    let text = SHADOW.replace("limits", "by = ['header:x-team']\nabsent = 'deny'\nlimits");
    let (server, _) = server(&text).await;
    assert_eq!(get("/").statuses(&server, 5).await, [200; 5]);
}

/// A shadow of permits takes and gives them back, and stops nobody.
#[tokio::test]
async fn a_shadow_of_permits_leaks_none() {
    let text = "[[rule]]\nname = 'slots'\nlimits = ['1 concurrent']\nalgorithm = 'concurrency'\nshadow = true";
    let (server, live) = server(text).await;
    assert_eq!(get("/").statuses(&server, 5).await, [200; 5]);
    assert_eq!(would_have_denied(&live, "slots"), 0);
}

fn percent(percent: u64) -> String {
    format!(
        "[[rule]]\nname = 'r'\nby = ['header:x-team']\nlimits = ['1/min']\nenforce_percent = {percent}"
    )
}

/// For which of 100 callers it is enforced.
async fn enforced_for(text: &str) -> Vec<usize> {
    let (server, _) = server(text).await;
    let mut enforced = Vec::new();
    for n in 0..100 {
        let asked = get("/").line("x-team", format!("team-{n}"));
        match asked.statuses(&server, 2).await[..] {
            [200, 429] => enforced.push(n),
            [200, 200] => {}
            ref other => panic!("{other:?}"),
        }
    }
    enforced
}

#[tokio::test]
async fn a_rule_may_be_enforced_for_a_part_of_all_callers() {
    assert_eq!(enforced_for(&percent(0)).await.len(), 0);
    assert_eq!(enforced_for(&percent(100)).await.len(), 100);
    let some = enforced_for(&percent(30)).await;
    assert!((10..60).contains(&some.len()), "{}", some.len());
    // The same ones each time; and with more, those and others.
    assert_eq!(enforced_for(&percent(30)).await, some);
    let more = enforced_for(&percent(60)).await;
    assert!(some.iter().all(|one| more.contains(one)) && more.len() > some.len());
}
