//! The spoofing table: nobody is trusted, and nothing a caller says buys one more request.

use crate::common::{Ask, Server, ask, get, limit, rules};

/// Nobody is trusted, though it is known where a proxy would say who asks.
const NOBODY_TRUSTED: &str = r#"
    [identity]
    user = "header:x-user-id"
    api_key = "header:x-api-key"
    tier = "header:x-plan"
    default_tier = "free"

    [[rule]]
    name = "api"
    by = ["api_key | user | ip"]
    tiers.free = ["3/min"]
    tiers.pro = ["300/min"]
    tiers.enterprise = ["unlimited"]
"#;

/// Not a word about where facts would be told.
const NO_IDENTITY: &str = r#"
    [identity]
    default_tier = "free"

    [[rule]]
    name = "api"
    by = ["api_key | user | ip"]
    tiers.free = ["3/min"]
    tiers.pro = ["300/min"]
    tiers.enterprise = ["unlimited"]
"#;

const LIMIT: u64 = 3;
const TRIES: u64 = 8;

/// A way to be somebody else with the n-th request.
type Trick = (&'static str, fn(Ask, u64) -> Ask);

/// Everything a caller can say about itself.
const CLAIMS: &[Trick] = &[
    ("a new API key each time", |ask, n| ask.line("X-Api-Key", format!("sk-{n}"))),
    ("two API keys", |ask, n| ask.line("x-api-key", "a").line("x-api-key", format!("{n}"))),
    ("a new user each time", |ask, n| ask.line("X-User-Id", format!("user-{n}"))),
    ("key and user", |ask, n| {
        ask.line("x-api-key", format!("k{n}")).line("x-user-id", format!("u{n}"))
    }),
    ("plan: pro", |ask, _| ask.line("X-Plan", "pro")),
    ("plan: enterprise", |ask, _| ask.line("x-plan", "enterprise")),
    ("plan: unlimited", |ask, _| ask.line("x-plan", "unlimited")),
    ("a pro with a new key", |ask, n| ask.line("x-plan", "pro").line("x-api-key", format!("k{n}"))),
    ("a bearer token", |ask, n| ask.line("authorization", format!("Bearer {n}"))),
    ("a token that nobody signed", |ask, n| {
        // {"alg":"none"} . {"sub":"admin","tier":"pro"}
        let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInRpZXIiOiJwcm8ifQ.";
        ask.line("authorization", format!("Bearer {token}{n}"))
    }),
    ("a password", |ask, n| ask.line("authorization", format!("Basic dXNlcjpw{n:04}"))),
    ("a session", |ask, n| ask.line("cookie", format!("session={n}; user=u{n}; x-api-key=k{n}"))),
    ("a query", |ask, n| ask.line("x-original-uri", format!("/?api_key={n}&user={n}"))),
    ("a user agent", |ask, n| ask.line("user-agent", format!("curl/{n}"))),
    ("an origin", |ask, n| ask.line("origin", format!("https://{n}.example"))),
    ("an empty key", |ask, _| ask.line("x-api-key", "")),
];

/// Everything a caller can say about where it is.
const ADDRESSES: &[Trick] = &[
    ("X-Forwarded-For", |ask, n| ask.line("X-Forwarded-For", format!("203.0.113.{n}"))),
    ("leftmost", |ask, n| ask.line("x-forwarded-for", format!("203.0.113.{n}, 127.0.0.1"))),
    ("rightmost", |ask, n| ask.line("x-forwarded-for", format!("127.0.0.1, 203.0.113.{n}"))),
    ("many lines", |ask, n| {
        let ask = ask.line("x-forwarded-for", format!("203.0.113.{n}"));
        let ask = ask.line("x-forwarded-for", "127.0.0.1");
        ask.line("x-forwarded-for", format!("198.51.100.{n}"))
    }),
    ("mapped", |ask, n| ask.line("x-forwarded-for", format!("::ffff:203.0.113.{n}"))),
    ("IPv6", |ask, n| ask.line("x-forwarded-for", format!("2001:db8:{n}::1"))),
    ("a port", |ask, n| ask.line("x-forwarded-for", format!("203.0.113.{n}:{}", 1000 + n))),
    ("brackets and a port", |ask, n| ask.line("x-forwarded-for", format!("[2001:db8:{n}::1]:80"))),
    ("a zone", |ask, n| ask.line("x-forwarded-for", format!("fe80::{n}%eth{n}"))),
    ("nonsense", |ask, n| ask.line("x-forwarded-for", format!("unknown-{n}, ,,\""))),
    ("a hundred", |ask, n| ask.line("x-forwarded-for", format!("10.0.{n}.1, ").repeat(100))),
    ("Forwarded", |ask, n| ask.line("forwarded", format!("for=203.0.113.{n};proto=https"))),
    ("Forwarded, quoted", |ask, n| {
        ask.line("forwarded", format!("for=\"[2001:db8:{n}::1]:4711\""))
    }),
    ("X-Real-IP", |ask, n| ask.line("x-real-ip", format!("203.0.113.{n}"))),
    ("CF-Connecting-IP", |ask, n| ask.line("cf-connecting-ip", format!("203.0.113.{n}"))),
    ("True-Client-IP", |ask, n| ask.line("true-client-ip", format!("203.0.113.{n}"))),
    ("X-Client-IP", |ask, n| ask.line("x-client-ip", format!("203.0.113.{n}"))),
    ("X-Cluster-Client-IP", |ask, n| ask.line("x-cluster-client-ip", format!("203.0.113.{n}"))),
    ("Fastly-Client-IP", |ask, n| ask.line("fastly-client-ip", format!("203.0.113.{n}"))),
    ("X-Envoy-External-Address", |ask, n| {
        ask.line("x-envoy-external-address", format!("192.0.2.{n}"))
    }),
    ("Via", |ask, n| ask.line("via", format!("1.1 proxy{n}"))),
    ("localhost", |ask, _| ask.line("x-forwarded-for", "127.0.0.1").line("x-real-ip", "::1")),
    ("a host", |ask, n| ask.line("host", format!("{n}.example.com:{}", 80 + n))),
    ("no host", |ask, _| ask.line("host", "")),
    ("X-Forwarded-Host", |ask, n| ask.line("x-forwarded-host", format!("{n}.example"))),
];

/// Forged from the first request on, exactly the limit passes: not one more, and not one less.
/// Forged when the limit is reached, nothing passes.
async fn assert_useless(rule_file: &str, tricks: &[Trick]) {
    for (name, trick) in tricks {
        let server = Server::limited(rules(rule_file)).await;
        for n in 0..TRIES {
            let status = trick(get("/"), n).status(&server).await;
            let expected = if n < LIMIT { 200 } else { 429 };
            assert_eq!(status, expected, "{name}: request {n}, forged from the first on");
        }
        assert_eq!(server.served(), LIMIT, "{name}");

        let server = Server::limited(rules(rule_file)).await;
        assert_eq!(get("/").statuses(&server, 4).await, [200, 200, 200, 429], "{name}");
        for n in 0..TRIES {
            let status = trick(get("/"), n).status(&server).await;
            assert_eq!(status, 429, "{name}: request {n}, forged when the limit was reached");
        }
        assert_eq!(server.served(), LIMIT, "{name}");
    }
}

#[tokio::test]
async fn what_callers_say_about_themselves_is_worth_nothing() {
    assert_useless(NOBODY_TRUSTED, CLAIMS).await;
    assert_useless(NO_IDENTITY, CLAIMS).await;
}

#[tokio::test]
async fn what_callers_say_about_their_address_is_worth_nothing() {
    assert_useless(NOBODY_TRUSTED, ADDRESSES).await;
    assert_useless(NO_IDENTITY, ADDRESSES).await;
}

#[tokio::test]
async fn all_tricks_together_are_worth_nothing() {
    let server = Server::limited(rules(NOBODY_TRUSTED)).await;
    for (n, (_, trick)) in CLAIMS.iter().chain(ADDRESSES).enumerate() {
        trick(get("/"), n as u64).send(&server).await;
    }
    assert_eq!(server.served(), LIMIT);
}

/// Without this, the tables above would also pass if all the world were one caller.
#[tokio::test]
async fn callers_from_two_addresses_are_two_callers() {
    let server = Server::limited(rules(NOBODY_TRUSTED)).await;
    for address in ["127.0.0.1", "127.0.0.2", "127.1.0.1"] {
        let statuses = get("/").from(address).statuses(&server, 4).await;
        assert_eq!(statuses, [200, 200, 200, 429], "{address}");
    }
}

/// A header in `by` is taken as it comes, as the rule asks for it: whoever writes that wants it so.
#[tokio::test]
async fn a_raw_header_is_taken_as_it_comes() {
    let text = "[[rule]]\nname = 'raw'\nby = ['header:x-api-key']\nlimits = ['1/min']";
    let server = Server::limited(rules(text)).await;
    for key in ["a", "b"] {
        let asked = get("/").line("X-API-Key", key);
        assert_eq!(asked.statuses(&server, 2).await, [200, 429], "{key}");
    }
    // Without it, all share one bucket.
    assert_eq!(get("/").status(&server).await, 200);
    assert_eq!(get("/").from("127.0.0.2").status(&server).await, 429);
}

/// Ways to write `/login` that a server behind might take for it.
const PATHS: &[&str] = &[
    "/login",
    "//login",
    "/login/",
    "/login//",
    "///login///",
    "/%6cogin",
    "/%6C%6f%67%69%6E",
    "/./login",
    "/login/.",
    "/%2e/login",
    "/x/../login",
    "/../login",
    "/x/%2E%2e/login",
    "/login?x=1",
    "/login?",
    "/login/?/../other",
    "http://localhost/login",
    "http://other.example:8080//login/",
    "http://user:password@localhost/login",
];

#[tokio::test]
async fn another_spelling_of_the_path_is_the_same_path() {
    for by in ["'ip'", "'ip', 'path'"] {
        let text = format!(
            "[[rule]]\nname = 'login'\nmatch.path = '/login'\nby = [{by}]\nlimits = ['3/min']"
        );
        let server = Server::limited(rules(&text)).await;
        assert_eq!(get("/login").statuses(&server, 4).await, [200, 200, 200, 429]);
        for path in PATHS {
            assert_eq!(get(path).status(&server).await, 429, "{path} by {by}");
        }
        assert_eq!(server.served(), LIMIT);
        // Other paths are free, so it was the rule that counted those.
        assert_eq!(get("/logout").status(&server).await, 200);
        assert_eq!(get("/login/x").status(&server).await, 200);
    }
}

#[tokio::test]
async fn spellings_of_the_path_count_from_the_first_on() {
    let text = "[[rule]]\nname = 'login'\nmatch.path = '/login'\nby = ['ip']\nlimits = ['3/min']";
    let server = Server::limited(rules(text)).await;
    for path in PATHS {
        get(path).send(&server).await;
    }
    assert_eq!(server.served(), LIMIT);
}

#[tokio::test]
async fn a_rule_for_a_tree_covers_all_spellings_below() {
    let text = "[[rule]]\nname = 'api'\nmatch.path = '/api/*'\nby = ['ip']\nlimits = ['3/min']";
    let server = Server::limited(rules(text)).await;
    for path in ["/api/a", "//api//b", "/%61pi/c", "/api", "/API/../api/d", "/x/../api/./e"] {
        get(path).send(&server).await;
    }
    assert_eq!(server.served(), LIMIT);
}

/// One host has many spellings, too.
#[tokio::test]
async fn another_spelling_of_the_host_is_the_same_host() {
    let text =
        "[[rule]]\nname = 'h'\nmatch.host = 'example.com'\nby = ['ip', 'host']\nlimits = ['1/min']";
    let server = Server::limited(rules(text)).await;
    for (n, host) in
        ["example.com", "EXAMPLE.com", "example.com:80", "Example.COM:8080"].iter().enumerate()
    {
        let status = get("/").line("host", *host).status(&server).await;
        assert_eq!(status, if n == 0 { 200 } else { 429 }, "{host}");
    }
    for target in ["http://example.com/", "http://EXAMPLE.COM:81/", "http://me@example.com/"] {
        let status = get(target).line("host", "other.example").status(&server).await;
        assert_eq!(status, 429, "{target}");
    }
    assert_eq!(server.served(), 1);
}

/// A name may end in the dot of the root; servers take it for the same.
#[tokio::test]
async fn a_host_with_the_dot_of_the_root_is_the_same_host() {
    let text =
        "[[rule]]\nname = 'h'\nmatch.host = 'example.com'\nby = ['ip', 'host']\nlimits = ['1/min']";
    let server = Server::limited(rules(text)).await;
    assert_eq!(get("/").line("host", "example.com").status(&server).await, 200);
    for host in ["example.com.", "EXAMPLE.com.:80"] {
        assert_eq!(get("/").line("host", host).status(&server).await, 429, "{host}");
    }
    assert_eq!(get("http://example.com./").status(&server).await, 429);
}

#[tokio::test]
async fn head_is_limited_as_get_is() {
    for by in ["'ip'", "'ip', 'method'"] {
        let text = format!(
            "[[rule]]\nname = 'read'\nmatch.method = 'GET'\nby = [{by}]\nlimits = ['3/min']"
        );
        let server = Server::limited(rules(&text)).await;
        for n in 0..TRIES {
            ask(if n % 2 == 0 { "HEAD" } else { "GET" }, "/").send(&server).await;
        }
        // Who counts by method counts them one by one.
        let expected = if by.contains("method") { 2 * LIMIT } else { LIMIT };
        assert_eq!(server.served(), expected, "{by}");
    }
}

#[tokio::test]
async fn other_methods_do_not_get_around_a_rule_for_all() {
    let server = Server::limited(rules(NOBODY_TRUSTED)).await;
    for method in ["GET", "get", "HEAD", "OPTIONS", "BREW", "POST", "DELETE", "TRACE", "PATCH"] {
        ask(method, "/").send(&server).await;
    }
    assert_eq!(server.served(), LIMIT);
}

/// Methods are told apart by case, and whoever serves by method tells them apart so, too.
#[tokio::test]
async fn a_method_in_lower_case_reaches_no_handler_of_the_method() {
    use axum::{Router, routing};

    let text = "[[rule]]\nname = 'login'\nmatch.method = 'POST'\nby = ['ip']\nlimits = ['1/min']";
    let app = Router::new().route("/login", routing::post(async || "in"));
    let app = app.layer(limit(rules(text), crate::common::store().0));
    let server = Server::start(app).await;
    assert_eq!(ask("POST", "/login").statuses(&server, 2).await, [200, 429]);
    for method in ["post", "Post", "pOST"] {
        assert_eq!(ask(method, "/login").status(&server).await, 405, "{method}");
    }
}

/// A preflight is free, but only a real one; and who names the method limits it.
#[tokio::test]
async fn nothing_is_free_for_looking_like_a_preflight() {
    let server = Server::limited(rules(NOBODY_TRUSTED)).await;
    assert_eq!(get("/").statuses(&server, 4).await, [200, 200, 200, 429]);
    let lines = [("origin", "https://a.example"), ("access-control-request-method", "PUT")];
    for method in ["GET", "POST", "options", "PUT"] {
        assert_eq!(ask(method, "/").lines(&lines).status(&server).await, 429, "{method}");
    }
    for line in lines {
        assert_eq!(ask("OPTIONS", "/").lines(&[line]).status(&server).await, 429, "{line:?}");
    }
}
