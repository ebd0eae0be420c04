//! What a rule file says of requests, as the backend sees it.

use crate::backend::Backend;
use crate::proxy::Proxy;

fn rule(name: &str, rest: &str) -> String {
    format!("[[rule]]\nname = '{name}'\n{rest}\n")
}

#[test]
fn by_address() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rule("each", "by = ['ip']\nlimits = ['2/day']"));
    for last in [1, 2, 3] {
        let mut caller = proxy.caller_from(last);
        let statuses: Vec<_> = (0..4).map(|_| caller.get("/").status).collect();
        assert_eq!(statuses, [200, 200, 429, 429]);
    }
    assert_eq!(backend.count(), 6);
}

#[test]
fn by_key_and_those_without_one_share_a_counter_or_are_skipped_or_denied() {
    let backend = Backend::start();
    let keyed = |absent: &str| {
        rule("key", &format!("by = ['header:x-api-key']\nlimits = ['1/day']\n{absent}"))
    };
    for (absent, expected) in [
        ("", [200, 429, 429]),
        ("absent = 'share'", [200, 429, 429]),
        ("absent = 'skip'", [200, 200, 200]),
    ] {
        let proxy = Proxy::by(&backend, &keyed(absent));
        for key in ["x-api-key: a", "X-API-Key: b"] {
            assert_eq!(proxy.statuses("/", &[key], 2), [200, 429], "{absent} {key}");
        }
        let statuses: Vec<_> = [1, 2, 3].map(|n| proxy.caller_from(n).get("/").status).into();
        assert_eq!(statuses, expected, "{absent}");
    }
    let proxy = Proxy::by(&backend, &keyed("absent = 'deny'"));
    backend.forget();
    let status = proxy.get("/").status;
    assert!((400..500).contains(&status), "{status}");
    assert_eq!(backend.count(), 0);
    assert_eq!(proxy.statuses("/", &["x-api-key: a"], 1), [200]);
}

#[test]
fn one_for_all() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rule("all", "limits = ['3/day']"));
    let statuses: Vec<_> = (1..=5).map(|n| proxy.caller_from(n).get("/").status).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(backend.count(), 3);
}

#[test]
fn by_route_and_no_other_way_of_writing_it_leads_around() {
    let backend = Backend::start();
    let login = "match = { method = 'POST', path = '/login' }\nlimits = ['1/day']";
    let api = "match = { path = '/api/*' }\nlimits = ['1/day']";
    let proxy = Proxy::by(&backend, &(rule("login", login) + &rule("api", api)));
    let mut caller = proxy.caller();
    let mut ask = |method: &str, path: &str| caller.ask(method, path, &[], "").status;
    assert_eq!([ask("POST", "/login"), ask("POST", "/login")], [200, 429]);
    assert_eq!([ask("GET", "/login"), ask("POST", "/logout")], [200, 200]);
    for around in ["/login/", "//login", "/%6Cogin", "/login?x=1", "/a/../login", "/./login"] {
        assert_eq!(ask("POST", around), 429, "{around}");
    }
    assert_eq!([ask("GET", "/api"), ask("GET", "/api/a/b"), ask("PUT", "/api/")], [200, 429, 429]);
    assert_eq!(ask("GET", "/apis"), 200);
}

#[test]
fn by_host_and_no_other_way_of_naming_it_leads_around() {
    let backend = Backend::start();
    let host = "match = { host = 'a.example', path = '/p' }\nlimits = ['1/day']";
    let proxy = Proxy::by(&backend, &rule("host", host));
    let ask = |head: &str| proxy.caller().try_answer_to(head).unwrap().status;
    assert_eq!(ask("GET /p HTTP/1.1\r\nhost: a.example\r\n\r\n"), 200);
    for around in [
        "GET /p HTTP/1.1\r\nhost: a.example\r\n\r\n",
        "GET /p HTTP/1.1\r\nHost: A.Example\r\n\r\n",
        "GET /p HTTP/1.1\r\nhost: a.example:8080\r\n\r\n",
        "GET http://a.example/p HTTP/1.1\r\nhost: a.example\r\n\r\n",
        "GET http://a.example/p HTTP/1.1\r\nhost: b.example\r\n\r\n",
        "GET HTTP://A.example:80/p HTTP/1.1\r\nhost: b.example\r\n\r\n",
        "GET /p HTTP/1.0\r\nhost: a.example\r\n\r\n",
        "GET /p HTTP/1.1\r\nhost: a.example\r\nx-forwarded-host: b.example\r\n\r\n",
    ] {
        let status = ask(around);
        assert!([400, 429].contains(&status), "{status} for {around:?}");
    }
    assert_eq!(ask("GET /p HTTP/1.1\r\nhost: b.example\r\n\r\n"), 200);
    assert_eq!(ask("GET http://b.example/p HTTP/1.1\r\nhost: a.example\r\n\r\n"), 200);
    assert_eq!(backend.seen()[2].header("host"), Some("b.example"));
}

#[test]
fn a_path_reaches_the_backend_as_it_was_written() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rule("all", "limits = ['100/day']"));
    let written = ["/a//b/", "/%6Cogin", "/a/../b", "/x?q=%2F&&a", "/%C3%A9", "/;a=1/b", "/?"];
    for path in written {
        assert_eq!(proxy.get(path).status, 200);
    }
    assert_eq!(backend.paths(), written);
}

#[test]
fn several_rules_are_all_or_nothing() {
    let backend = Backend::start();
    let narrow = "match = { path = '/narrow' }\nby = ['ip']\nlimits = ['2/day']";
    let wide = "by = ['ip']\nlimits = ['5/day', '9/month']";
    let proxy = Proxy::by(&backend, &(rule("narrow", narrow) + &rule("wide", wide)));
    assert_eq!(proxy.statuses("/narrow", &[], 12)[2..], [429; 10]);
    // Two were used of the wide one, none by the ten.
    assert_eq!(proxy.statuses("/", &[], 4), [200, 200, 200, 429]);
    // And those that the wide one denies use nothing of the narrow one.
    assert_eq!(backend.count(), 5);
    let denied = proxy.get("/narrow").json()["violated-policies"].to_string();
    assert!(denied.contains("narrow") && denied.contains("wide-day"), "{denied}");
}

#[test]
fn a_shadow_counts_and_never_denies() {
    let backend = Backend::start();
    let shadow = rule("shade", "limits = ['2/day']\nshadow = true");
    let proxy = Proxy::by(&backend, &(shadow + &rule("real", "limits = ['4/day']")));
    assert_eq!(proxy.statuses("/", &[], 5), [200, 200, 200, 200, 429]);
    assert!(proxy.metric(r#"dashpot_rule_shadow_denied_total{rule="shade"}"#) >= 2.0);
    assert_eq!(proxy.metric(r#"dashpot_rule_denied_total{rule="shade"}"#), 0.0);
    assert_eq!(proxy.metric(r#"dashpot_rule_denied_total{rule="real"}"#), 1.0);
}

#[test]
fn some_are_never_limited_and_some_never_served() {
    let backend = Backend::start();
    let lists = "[allow]\nip = ['127.0.0.8/30']\n[block]\nip = ['127.0.0.9']\n\
                 'header:user-agent' = ['BadBot/1.0']\n";
    let proxy = Proxy::by(&backend, &(lists.to_owned() + &rule("all", "limits = ['1/day']")));
    let from = |last: u8, lines: &[&str]| proxy.caller_from(last).ask("GET", "/", lines, "").status;
    for _ in 0..5 {
        assert_eq!(from(8, &[]), 200);
        assert_eq!(from(9, &[]), 403, "even if also allowed");
        assert_eq!(from(8, &["user-agent: BadBot/1.0"]), 403);
    }
    assert_eq!([from(1, &[]), from(1, &[])], [200, 429], "none of them took it");
    assert_eq!(backend.count(), 6);
}

#[test]
fn a_question_before_a_browser_sends_is_not_counted() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, &rule("all", "limits = ['1/day']"));
    let lines = ["origin: http://a.example", "access-control-request-method: PUT"];
    for _ in 0..3 {
        assert_eq!(proxy.caller().ask("OPTIONS", "/", &lines, "").status, 200);
    }
    assert_eq!(proxy.statuses("/", &[], 2), [200, 429]);
    assert_eq!(backend.count(), 4);
}
