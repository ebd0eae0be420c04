use dashpot::{Check, ManualClock, MemoryStore, Policy, Timestamp};

use super::*;

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, quota.parse().unwrap()).unwrap()
}

fn store() -> MemoryStore {
    MemoryStore::with_clock(ManualClock::new(Timestamp::from_secs(1_000_000_000)))
}

/// The answer to the second of two equal requests.
fn answer(policies: &[Policy], on_deny: Option<&OnDeny>, grpc: bool) -> Response<Bytes> {
    let store = store();
    let checks: Vec<_> = policies.iter().map(|policy| Check::new(policy, "a")).collect();
    let _ = store.decide_now(&checks);
    let decision = store.decide_now(&checks);
    assert!(!decision.is_allowed());
    let wait = Wait::of(&decision, Duration::ZERO);
    denied(&decision, &wait, &Headers::default(), on_deny, grpc)
}

fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

fn field<'a>(response: &'a Response<Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn a_denial_says_why_and_for_how_long() {
    let response = answer(&[policy("login", "1/15s")], None, false);
    assert_eq!(response.status(), 429);
    assert_eq!(field(&response, "retry-after"), Some("15"));
    assert_eq!(field(&response, "cache-control"), Some("no-store"));
    assert_eq!(field(&response, "content-type"), Some("application/problem+json"));
    assert_eq!(field(&response, "ratelimit"), Some(r#""login";r=0;t=15"#));
    assert_eq!(field(&response, "ratelimit-policy"), Some(r#""login";q=1;w=15"#));
    assert_eq!(
        text(&response),
        concat!(
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
            r#""title":"Request cannot be satisfied as assigned quota has been exceeded","#,
            r#""status":429,"detail":"Too many requests. Retry after 15 seconds.","#,
            r#""violated-policies":["login"],"error":"rate_limited","#,
            r#""message":"Too many requests. Retry after 15 seconds.","retry_after":15}"#,
        )
    );
}

#[test]
fn every_denier_is_named_once() {
    let policies = [policy("a\"☃", "1/s"), policy("ok", "5/s"), policy("b", "1/s")];
    let response = answer(&policies, None, false);
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["a\"☃", "b"]));
    assert_eq!(body["detail"], "Too many requests. Retry after 1 second.");
}

#[test]
fn without_a_wait_there_is_no_retry_after() {
    let never = answer(&[policy("p", "0/s")], None, false);
    let body: serde_json::Value = serde_json::from_slice(never.body()).unwrap();
    assert_eq!(
        (body["detail"].as_str(), body.get("retry_after")),
        (Some("This request can never be granted."), None,)
    );
    assert_eq!(field(&never, "retry-after"), None);

    let unknown = answer(&[policy("p", "1 concurrent")], None, false);
    let body: serde_json::Value = serde_json::from_slice(unknown.body()).unwrap();
    assert_eq!(
        (body["message"].as_str(), body.get("retry_after")),
        (Some("Too many requests. Try again later."), None,)
    );
    assert_eq!(field(&unknown, "retry-after"), None);
}

fn on_deny(edit: impl FnOnce(&mut OnDeny)) -> OnDeny {
    let mut on_deny = OnDeny::default();
    edit(&mut on_deny);
    on_deny
}

#[test]
fn a_rule_may_answer_something_else() {
    let policies = [policy("p", "1/s")];
    let status = on_deny(|said| said.status = Some(403));
    let response = answer(&policies, Some(&status), false);
    assert_eq!(response.status(), 403);
    assert!(text(&response).contains(r#""status":403,"#));
    assert_eq!(field(&response, "retry-after"), Some("1"));

    let body = on_deny(|said| said.body = Some("slow down".into()));
    let response = answer(&policies, Some(&body), false);
    assert_eq!((response.status().as_u16(), text(&response)), (429, "slow down"));
    assert_eq!(field(&response, "content-type"), Some("text/plain; charset=utf-8"));

    let typed = on_deny(|said| {
        said.body = Some("<p>".into());
        said.content_type = Some("text/html".into());
    });
    assert_eq!(field(&answer(&policies, Some(&typed), false), "content-type"), Some("text/html"));

    let redirect = on_deny(|said| said.redirect = Some("/captcha".into()));
    let response = answer(&policies, Some(&redirect), false);
    assert_eq!((response.status().as_u16(), text(&response)), (303, ""));
    assert_eq!(field(&response, "location"), Some("/captcha"));
    assert_eq!(field(&response, "content-type"), None);
}

#[test]
fn what_a_rule_says_wrongly_it_does_not_say() {
    let wrong = on_deny(|said| {
        said.status = Some(9);
        said.redirect = Some("a\nb".into());
        said.content_type = Some("a\nb".into());
        said.body = Some("no".into());
    });
    let response = answer(&[policy("p", "1/s")], Some(&wrong), false);
    assert_eq!((response.status().as_u16(), text(&response)), (429, "no"));
    assert_eq!(field(&response, "content-type"), Some("text/plain; charset=utf-8"));
}

#[test]
fn grpc_is_told_in_its_own_way() {
    let redirect = on_deny(|said| said.redirect = Some("/captcha".into()));
    let response = answer(&[policy("p", "1/2s")], Some(&redirect), true);
    assert_eq!((response.status().as_u16(), text(&response)), (200, ""));
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("grpc-status", "8"),
        ("grpc-message", "Too many requests. Retry after 2 seconds."),
        ("grpc-retry-pushback-ms", "2000"),
        ("retry-after", "2"),
        ("ratelimit", r#""p";r=0;t=2"#),
    ] {
        assert_eq!(field(&response, name), Some(value), "{name}");
    }
    assert_eq!(field(&response, "location"), None);
    let never = answer(&[policy("p", "0/s")], None, true);
    assert_eq!(field(&never, "grpc-retry-pushback-ms"), Some("-1"));
    let unknown = answer(&[policy("p", "1 concurrent")], None, true);
    assert_eq!(field(&unknown, "grpc-retry-pushback-ms"), None);
    assert_eq!(field(&blocked(true), "grpc-status"), Some("7"));
    assert_eq!(field(&unavailable(true), "grpc-status"), Some("14"));
    assert_eq!(field(&unavailable(true), "grpc-retry-pushback-ms"), Some("1000"));
}

#[test]
fn the_blocked_and_the_unlucky_are_told_so() {
    let response = blocked(false);
    assert_eq!(response.status(), 403);
    assert_eq!(
        text(&response),
        concat!(
            r#"{"type":"about:blank","title":"Forbidden","status":403,"#,
            r#""detail":"This caller is blocked.","error":"forbidden","#,
            r#""message":"This caller is blocked."}"#,
        )
    );
    let response = unavailable(false);
    assert_eq!(response.status(), 503);
    assert_eq!(field(&response, "retry-after"), Some("1"));
    assert!(text(&response).contains("#temporary-reduced-capacity\""));
    assert!(text(&response).ends_with(r#""retry_after":1}"#));
}
