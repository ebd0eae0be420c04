//! Those who are refused whatever they have left, those who are never limited, and what a rule
//! answers instead of 429.

use serde_json::json;

use crate::common::{Server, ask, get, rules};

#[tokio::test]
async fn the_blocked_are_refused() {
    let text =
        "[block]\nip = ['127.0.0.2', '127.9.0.0/16']\n[[rule]]\nname = 'r'\nlimits = ['9/min']";
    let server = Server::limited(rules(text)).await;
    for address in ["127.0.0.2", "127.9.8.7"] {
        let answer = get("/").from(address).send(&server).await;
        assert_eq!(answer.status, 403, "{address}");
        assert_eq!(answer.get("content-type"), Some("application/problem+json"));
        assert_eq!(answer.get("cache-control"), Some("no-store"));
        assert_eq!(answer.get("retry-after"), None);
        assert_eq!(answer.json()["error"], json!("forbidden"));
    }
    for address in ["127.0.0.1", "127.0.0.3", "127.8.0.1"] {
        assert_eq!(get("/").from(address).status(&server).await, 200, "{address}");
    }
    assert_eq!(server.served(), 3);
}

/// Also where no rule is about the request, and where a priority lets it pass.
#[tokio::test]
async fn the_blocked_are_refused_everywhere() {
    let text = r#"
        [block]
        ip = ["127.0.0.2"]
        "header:user-agent" = ["BadBot/1.0"]
        [[priority]]
        name = "webhook"
        match.path = "/webhooks/*"
        weight = "unlimited"
        [[rule]]
        name = "r"
        match.path = "/api/*"
        limits = ["9/min"]
    "#;
    let server = Server::limited(rules(text)).await;
    let preflight = [("origin", "https://a.example"), ("access-control-request-method", "PUT")];
    for path in ["/api/a", "/webhooks/a", "/else"] {
        assert_eq!(get(path).from("127.0.0.2").status(&server).await, 403, "{path}");
        let bot = get(path).line("user-agent", "BadBot/1.0");
        assert_eq!(bot.status(&server).await, 403, "{path}");
        let asked = ask("OPTIONS", path).from("127.0.0.2").lines(&preflight);
        assert_eq!(asked.status(&server).await, 403, "{path}");
        assert_eq!(get(path).status(&server).await, 200, "{path}");
    }
}

#[tokio::test]
async fn the_allowed_are_never_limited_and_use_up_nothing() {
    let text = "[allow]\nip = ['127.0.0.2']\n[[rule]]\nname = 'r'\nlimits = ['2/min']";
    let server = Server::limited(rules(text)).await;
    let allowed = get("/").from("127.0.0.2");
    assert_eq!(allowed.statuses(&server, 10).await, [200; 10]);
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    assert_eq!(allowed.status(&server).await, 200);
}

#[tokio::test]
async fn who_is_on_both_lists_is_blocked() {
    let text = "[allow]\nip = ['127.0.0.0/8']\n[block]\nip = ['127.0.0.2']\n[[rule]]\nname = 'r'\nlimits = ['1/min']";
    let server = Server::limited(rules(text)).await;
    assert_eq!(get("/").from("127.0.0.2").status(&server).await, 403);
    assert_eq!(get("/").statuses(&server, 3).await, [200; 3]);
}

/// Lists are about what is believed: nobody gets onto one by saying so.
#[tokio::test]
async fn nobody_is_allowed_for_saying_so() {
    let text = r#"
        [identity]
        user = "header:x-user-id"
        api_key = "header:x-api-key"
        tier = "header:x-plan"
        [allow]
        ip = ["203.0.113.7"]
        user = ["admin"]
        tier = ["enterprise"]
        api_key = ["72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20"]
        [[rule]]
        name = "r"
        limits = ["2/min"]
    "#;
    let server = Server::limited(rules(text)).await;
    get("/").statuses(&server, 2).await;
    for line in [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-user-id", "admin"),
        ("x-plan", "enterprise"),
        ("x-api-key", "alice-key"),
    ] {
        assert_eq!(get("/").lines(&[line]).status(&server).await, 429, "{line:?}");
    }
    assert_eq!(server.served(), 2);
}

fn by_team(absent: &str) -> String {
    format!("[[rule]]\nname = 'r'\nby = ['header:x-team']\nlimits = ['2/min']\nabsent = '{absent}'")
}

#[tokio::test]
async fn those_without_the_fact_share_one_bucket() {
    for text in [by_team("share"), by_team("share").replace("absent = 'share'", "")] {
        let server = Server::limited(rules(&text)).await;
        let statuses = [
            get("/").status(&server).await,
            get("/").from("127.0.0.2").status(&server).await,
            get("/").from("127.0.0.3").status(&server).await,
        ];
        assert_eq!(statuses, [200, 200, 429]);
        assert_eq!(get("/").line("x-team", "red").status(&server).await, 200);
    }
}

#[tokio::test]
async fn those_without_the_fact_may_be_free_or_refused() {
    let server = Server::limited(rules(&by_team("skip"))).await;
    assert_eq!(get("/").statuses(&server, 6).await, [200; 6]);
    assert_eq!(get("/").line("x-team", "red").statuses(&server, 3).await, [200, 200, 429]);

    let server = Server::limited(rules(&by_team("deny"))).await;
    let refused = get("/").send(&server).await;
    assert_eq!((refused.status, refused.get("retry-after")), (403, None));
    assert_eq!(refused.json()["detail"], "This request does not say who it is from.");
    assert_eq!(get("/").line("x-team", "red").statuses(&server, 3).await, [200, 200, 429]);
    assert_eq!(server.served(), 2);
}

/// A request that one rule refuses is not charged by another.
#[tokio::test]
async fn who_is_refused_for_a_missing_fact_pays_nothing() {
    let text = by_team("deny") + "\n[[rule]]\nname = 'all'\nlimits = ['2/min']";
    let server = Server::limited(rules(&text)).await;
    assert_eq!(get("/").statuses(&server, 5).await, [403; 5]);
    assert_eq!(get("/").line("x-team", "red").statuses(&server, 2).await, [200, 200]);
}

async fn denied(on_deny: &str) -> crate::common::Answer {
    let text = format!("[[rule]]\nname = 'r'\nlimits = ['1/min']\non_deny = {{ {on_deny} }}");
    let server = Server::limited(rules(&text)).await;
    assert_eq!(get("/").status(&server).await, 200);
    let answer = get("/").send(&server).await;
    assert_eq!(server.served(), 1);
    // However it is said, these are there.
    assert_eq!(answer.get("retry-after"), Some("60"), "{on_deny}");
    assert_eq!(answer.get("ratelimit"), Some(r#""r";r=0;t=60"#), "{on_deny}");
    assert_eq!(answer.get("cache-control"), Some("no-store"), "{on_deny}");
    answer
}

#[tokio::test]
async fn a_rule_may_answer_with_another_status() {
    let answer = denied("status = 503").await;
    assert_eq!((answer.status, &answer.json()["status"]), (503, &json!(503)));
}

#[tokio::test]
async fn a_rule_may_answer_with_words_of_its_own() {
    let answer = denied("body = 'later'").await;
    assert_eq!((answer.status, answer.text()), (429, "later"));
    assert_eq!(answer.get("content-type"), Some("text/plain; charset=utf-8"));
    let answer = denied("body = '<p>later', content_type = 'text/html', status = 420").await;
    assert_eq!((answer.status, answer.text()), (420, "<p>later"));
    assert_eq!(answer.get("content-type"), Some("text/html"));
}

#[tokio::test]
async fn a_rule_may_send_callers_elsewhere() {
    let answer = denied("redirect = '/captcha?from=limit'").await;
    assert_eq!((answer.status, answer.get("location")), (303, Some("/captcha?from=limit")));
    assert!(answer.body.is_empty());
    let answer = denied("redirect = 'https://a.example/', status = 307").await;
    assert_eq!((answer.status, answer.get("location")), (307, Some("https://a.example/")));
}

/// The rule that denies answers, not the first that has something to say.
#[tokio::test]
async fn the_rule_that_denies_answers() {
    let text = "
        [[rule]]
        name = 'wide'
        limits = ['9/min']
        on_deny = { status = 503 }
        [[rule]]
        name = 'narrow'
        limits = ['1/min']
        on_deny = { status = 418, body = 'teapot' }
    ";
    let server = Server::limited(rules(text)).await;
    get("/").send(&server).await;
    let answer = get("/").send(&server).await;
    assert_eq!((answer.status, answer.text()), (418, "teapot"));
}
