//! Questions by the rules of the file.

use serde_json::{Value, json};

use crate::support::Server;

/// How much is left by the only rule, after asking.
#[track_caller]
fn left(server: &Server, request: Value) -> u64 {
    server.request(&request).allowed().remaining()
}

#[test]
fn each_fact_that_is_told_is_counted_by() {
    let rule = |by: &str| format!("[[rule]]\nname = 'r'\nby = [{by:?}]\nlimits = ['5/h']");
    for (by, one, other) in [
        ("ip", json!({"ip": "203.0.113.7"}), json!({"ip": "203.0.113.8"})),
        ("user", json!({"user": "alice"}), json!({"user": "bob"})),
        ("api_key", json!({"api_key": "k1"}), json!({"api_key": "k2"})),
        ("tier", json!({"tier": "pro"}), json!({"tier": "free"})),
        ("method", json!({"method": "POST"}), json!({"method": "PUT"})),
        ("path", json!({"path": "/a"}), json!({"path": "/b"})),
        ("query:q", json!({"path": "/?q=1"}), json!({"path": "/?q=2"})),
        ("query:q", json!({"path": "/?q=%2F"}), json!({"path": "/?q=%2f%2f"})),
        ("host", json!({"host": "a.example"}), json!({"host": "b.example"})),
        ("header:x-a", json!({"headers": {"x-a": "1"}}), json!({"headers": {"x-a": "2"}})),
        ("header:x-a", json!({"headers": {"X-A": ["1"]}}), json!({"headers": {"X-A": ["2"]}})),
        (
            "cookie:s",
            json!({"headers": {"cookie": "t=9; s=1"}}),
            json!({"headers": {"cookie": "t=9; s=2"}}),
        ),
        ("fact:tenant", json!({"facts": {"tenant": "a"}}), json!({"facts": {"tenant": "b"}})),
        (
            "json:email",
            json!({"headers": {"content-type": "application/json"}, "body": "{\"email\":\"a\"}"}),
            json!({"headers": {"content-type": "application/json"}, "body": "{\"email\":\"b\"}"}),
        ),
        (
            "form:email",
            json!({"headers": {"content-type": "application/x-www-form-urlencoded"},
                "body": "email=a%40b"}),
            json!({"headers": {"content-type": "application/x-www-form-urlencoded"},
                "body": "email=b%40b"}),
        ),
    ] {
        let server = Server::by(&rule(by));
        let whole = |facts: &Value| {
            let mut request = json!({"method": "POST", "path": "/"});
            request.as_object_mut().unwrap().append(facts.clone().as_object_mut().unwrap());
            request
        };
        assert_eq!(left(&server, whole(&one)), 4, "{by}");
        assert_eq!(left(&server, whole(&one)), 3, "{by}: the same is counted on");
        assert_eq!(left(&server, whole(&other)), 4, "{by}: another is counted apart");
    }
}

#[test]
fn a_body_is_looked_at_as_its_content_type_says() {
    let server = Server::by("[[rule]]\nname = 'r'\nby = ['json:email']\nlimits = ['5/h']");
    let body = |kind: Option<&str>, body: &str| {
        let headers = kind.map_or(json!({}), |kind| json!({ "content-type": kind }));
        left(&server, json!({"method": "POST", "path": "/", "headers": headers, "body": body}))
    };
    let json = Some("application/json; charset=utf-8");
    assert_eq!(body(json, "{\"email\":\"A@Example.com \"}"), 4);
    assert_eq!(body(json, "{\"email\":\"a@example.com\"}"), 3, "trimmed and in lower case");
    // Not JSON by its type or by its text: absent, and all who lack it share one counter.
    assert_eq!(body(Some("text/plain"), "{\"email\":\"a@example.com\"}"), 4);
    assert_eq!(body(json, "nonsense"), 3);
    assert_eq!(body(json, ""), 2);
}

#[test]
fn several_rules_apply_together_and_the_one_that_denies_is_named() {
    let server = Server::by(
        "[[rule]]\nname = 'all'\nlimits = ['10/h']\n\
         [[rule]]\nname = 'login'\nmatch = { method = 'POST', path = '/login' }\nby = ['ip']\n\
         limits = ['2/h']",
    );
    let login = json!({"method": "POST", "path": "/login?next=%2F", "ip": "203.0.113.7"});
    for _ in 0..2 {
        assert_eq!(server.request(&login).allowed().policies(), 2);
    }
    for _ in 0..3 {
        let answer = server.request(&login).denied("limited");
        assert_eq!(answer.json()["rule"], "login", "{answer:?}");
    }
    let elsewhere = server.request(&json!({"path": "/"})).allowed();
    assert_eq!(elsewhere.remaining(), 7, "denials took from another rule");
    // Written another way, it is the same path.
    for path in ["/login/", "//login", "/%6Cogin", "/x/../login", "/./login"] {
        let request = json!({"method": "POST", "path": path, "ip": "203.0.113.7"});
        server.request(&request).denied("limited");
    }
    let head = json!({"method": "GET", "path": "/login", "ip": "203.0.113.7"});
    assert_eq!(server.request(&head).allowed().policies(), 1);
}

#[test]
fn a_request_that_no_rule_matches_is_allowed() {
    let rules = "[[rule]]\nname = 'a'\nmatch = { path = '/a' }\nlimits = ['1/h']";
    let server = Server::by(rules);
    for _ in 0..3 {
        let answer = server.request(&json!({"path": "/b"})).allowed();
        assert_eq!(answer.policies(), 0, "{answer:?}");
    }
}

#[test]
fn the_cost_is_the_rules_times_what_is_said() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['100/h']\ncost = 5");
    let ask = |cost: Value| {
        let answer = server.check(&json!({"request": {"path": "/"}, "cost": cost}));
        answer.allowed().remaining()
    };
    assert_eq!(left(&server, json!({"path": "/"})), 95);
    assert_eq!(ask(json!(3)), 80);
    assert_eq!(ask(json!(0)), 80, "0 only looks");
    let over = server.check(&json!({"request": {"path": "/"}, "cost": u64::MAX}));
    assert_eq!(over.denied("limited").header("retry-after"), None);
    assert_eq!(ask(json!(1)), 75);
}

#[test]
fn tiers_and_priorities() {
    let server = Server::by(
        "[identity]\ndefault_tier = 'free'\n\
         [[priority]]\nname = 'hook'\nmatch = { path = '/hook' }\nweight = 'unlimited'\n\
         [[priority]]\nname = 'big'\nmatch = { fact = { size = 'big' } }\nweight = 10.0\n\
         [[rule]]\nname = 'api'\nby = ['user']\ntiers.free = ['2/h']\ntiers.pro = ['20/h']",
    );
    let limit = |request: Value| server.request(&request).allowed().policy(0)["limit"].clone();
    assert_eq!(limit(json!({"path": "/", "user": "a"})), 2);
    assert_eq!(limit(json!({"path": "/", "user": "b", "tier": "pro"})), 20);
    assert_eq!(limit(json!({"path": "/", "user": "c", "facts": {"size": "big"}})), 20);
    // Who changes tier goes on with what was used.
    assert_eq!(left(&server, json!({"path": "/", "user": "a", "tier": "pro"})), 18);
    for _ in 0..5 {
        server.request(&json!({"path": "/hook", "user": "a"})).allowed();
    }
    assert_eq!(server.request(&json!({"path": "/", "user": "a"})).status, 429, "free again: 2/h");
}

#[test]
fn shadow_rules_count_and_never_deny() {
    let server = Server::by(
        "[[rule]]\nname = 'shade'\nlimits = ['1/h']\nshadow = true\n\
         [[rule]]\nname = 'firm'\nlimits = ['3/h']",
    );
    for _ in 0..3 {
        server.request(&json!({"path": "/"})).allowed();
    }
    // A shadow rule that ends the search would let this one pass.
    let answer = server.request(&json!({"path": "/"})).denied("limited");
    assert_eq!(answer.json()["rule"], "firm", "{answer:?}");
}

#[test]
fn lists_and_what_a_rule_insists_on() {
    let server = Server::by(
        "[allow]\nuser = ['root']\n[block]\nip = ['198.51.100.0/24']\n\
         'header:user-agent' = ['BadBot/1.0']\n\
         [[rule]]\nname = 'r'\nby = ['fact:tenant']\nlimits = ['1/h']\nabsent = 'deny'",
    );
    let acme = json!({"path": "/", "facts": {"tenant": "acme"}});
    server.request(&acme).allowed();
    server.request(&acme).denied("limited");
    for _ in 0..3 {
        server.request(&json!({"path": "/", "user": "root"})).allowed();
    }
    for blocked in [
        json!({"path": "/", "ip": "198.51.100.9", "facts": {"tenant": "new"}}),
        json!({"path": "/", "ip": "198.51.100.9", "user": "root"}),
        json!({"path": "/", "headers": {"user-agent": "BadBot/1.0"}, "facts": {"tenant": "new"}}),
    ] {
        let answer = server.request(&blocked).denied("blocked");
        assert_eq!(answer.header("retry-after"), None, "no wait would do: {answer:?}");
    }
    let answer = server.request(&json!({"path": "/"})).denied("absent");
    assert_eq!(answer.json()["rule"], "r", "{answer:?}");
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    server.request(&json!({"path": "/", "facts": {"tenant": "new"}})).allowed();
}

#[test]
fn method_is_get_if_left_out_and_nothing_else_is_needed() {
    let rules = "[[rule]]\nname = 'g'\nmatch = { method = 'GET' }\nlimits = ['5/h']";
    let server = Server::by(rules);
    assert_eq!(left(&server, json!({"path": "/"})), 4);
    assert_eq!(left(&server, json!({"path": "/", "method": "HEAD"})), 3);
    assert_eq!(server.request(&json!({"path": "/", "method": "POST"})).allowed().policies(), 0);
}
