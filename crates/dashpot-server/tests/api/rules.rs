//! The rules in use: listed, read again, compared, explained.

use serde_json::{Value, json};

use crate::support::{Server, until};

const OLD: &str = "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['5/h']\n";
const NEW: &str = "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['8/h']\n\
    [[rule]]\nname = 'more'\nlimits = ['100/h']\n";

fn names(server: &Server) -> Vec<String> {
    let json = server.get("/v1/rules").is(200).json();
    let rules = json["rules"].as_array().unwrap();
    rules.iter().map(|rule| rule["name"].as_str().unwrap().to_owned()).collect()
}

fn diff(server: &Server, rules: &str) -> crate::support::Answer {
    server.client().ask("POST", "/v1/rules/diff", &[], rules.as_bytes())
}

#[test]
fn are_listed_with_what_they_say_and_their_counts() {
    let server =
        Server::by(&format!("{OLD}[[rule]]\nname = 'shade'\nlimits = ['2/h']\nshadow = true"));
    for n in 0..7 {
        let answer = server.request(&json!({"path": "/", "ip": "203.0.113.7"}));
        assert_eq!(answer.status, if n < 5 { 200 } else { 429 });
    }
    let json = server.get("/v1/rules").is(200).json();
    assert_eq!(json["generation"], 1);
    assert!(json["file"].as_str().unwrap().ends_with("dashpot.toml"), "{json}");
    let count = |rule: &Value, name: &str| rule[name].as_u64().unwrap_or_else(|| panic!("{rule}"));
    let (api, shade) = (&json["rules"][0], &json["rules"][1]);
    assert_eq!(api["name"], "api");
    assert!(api.to_string().contains("5/h"), "what it says: {api}");
    let counts = ["allowed", "denied", "shadow_denied", "degraded"];
    assert_eq!(counts.map(|name| count(api, name)), [5, 2, 0, 0], "{api}");
    // The shadow rule let two pass, and would have denied three of those that passed; what `api`
    // denied never was its own to judge alone.
    assert_eq!(count(shade, "allowed"), 2, "{shade}");
    assert_eq!(count(shade, "denied"), 0, "{shade}");
    assert!(count(shade, "shadow_denied") >= 3, "{shade}");
    assert_eq!(count(shade, "degraded"), 0, "{shade}");
}

#[test]
fn near_limit_counts_those_that_pass_with_little_left() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['10/h']");
    let near = || server.get("/v1/rules").is(200).json()["rules"][0]["near_limit"].clone();
    for n in 1..=10 {
        server.request(&json!({"path": "/"})).allowed();
        // Less than a fifth of 10: those that leave 1 and 0.
        let expected = if n < 9 { 0 } else { n - 8 };
        assert_eq!(near(), expected, "after {n}");
    }
    server.request(&json!({"path": "/"})).denied("limited");
    assert_eq!(near(), 2, "a denial is not near");
}

#[test]
fn a_small_limit_can_be_near_as_well() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['2/h']");
    server.request(&json!({"path": "/"})).allowed();
    server.request(&json!({"path": "/"})).allowed();
    let near = server.get("/v1/rules").is(200).json()["rules"][0]["near_limit"].clone();
    assert_eq!(near, 1, "the second left 0 of 2, less than a fifth");
}

#[test]
fn are_read_again_when_told_and_counts_go_on() {
    let server = Server::by(OLD);
    let request = json!({"path": "/", "ip": "203.0.113.7"});
    server.request(&request).allowed();
    server.write("dashpot.toml", NEW);
    let answer = server.post("/v1/rules/reload", &json!({})).is(200);
    // The file is watched, too: whoever came first told of the changes.
    assert!(answer.json()["changes"].is_array(), "{answer:?}");
    assert_eq!(names(&server), ["api", "more"]);
    let answer = server.request(&request).allowed();
    assert_eq!(answer.policy(0)["remaining"], 6, "8 less the 2 that were used: {answer:?}");
    let rules = server.get("/v1/rules").is(200).json();
    assert_eq!(rules["rules"][0]["allowed"], 2, "{rules}");
    assert!(rules["generation"].as_u64().unwrap() >= 2, "{rules}");
}

#[test]
fn are_read_again_by_themselves_and_on_sighup() {
    let server = Server::by(OLD);
    server.write("dashpot.toml", NEW);
    until("the new rules", || names(&server) == ["api", "more"]);
    server.write("dashpot.toml", OLD);
    server.signal("-HUP");
    until("the old rules", || names(&server) == ["api"]);
    server.get("/healthz").is(200);
}

#[test]
fn what_is_wrong_is_told_and_the_last_good_ones_stay() {
    let server = Server::by(OLD);
    server.write("dashpot.toml", "[[rule]]\nname = 'api'\nlimits = ['5/fortnight']\nlimts = 3\n");
    let answer = server.post("/v1/rules/reload", &json!({})).problem(400);
    let text = answer.text();
    assert!(text.contains("fortnight") && text.contains("limts"), "all that is wrong: {answer:?}");
    assert!(text.contains("dashpot.toml:3:") && text.contains("dashpot.toml:4:"), "{answer:?}");
    assert_eq!(names(&server), ["api"]);
    server.request(&json!({"path": "/", "ip": "203.0.113.7"})).allowed();
    server.write("dashpot.toml", NEW);
    server.post("/v1/rules/reload", &json!({})).is(200);
    assert_eq!(names(&server), ["api", "more"]);
}

#[test]
fn a_reload_needs_no_body() {
    let server = Server::by(OLD);
    server.client().ask("POST", "/v1/rules/reload", &[], b"").is(200);
    Server::start(&[]).client().ask("POST", "/v1/rules/reload", &[], b"").problem(400);
}

#[test]
fn a_difference_is_told_and_nothing_changes() {
    let server = Server::by(OLD);
    let answer = diff(&server, NEW).is(200);
    let changes = answer.json()["changes"].to_string();
    assert!(changes.contains("more") && changes.contains("8/h"), "{answer:?}");
    assert_eq!(diff(&server, OLD).is(200).json()["changes"], json!([]));
    assert_eq!(names(&server), ["api"]);
    assert_eq!(server.get("/v1/rules").json()["generation"], 1);
    let answer = diff(&server, "[[rule]]\nname = 'x'\nlimits = ['5/fortnight']").problem(400);
    assert!(answer.text().contains("fortnight"), "{answer:?}");
    diff(&server, "\u{0}").problem(400);
}

#[test]
fn an_explanation_says_what_a_request_is_held_to_and_takes_nothing() {
    let server = Server::by(&format!("[block]\nuser = ['mallory']\n{OLD}"));
    let explain = |request: Value| {
        server.post("/v1/rules/explain", &json!({ "request": request })).is(200).json()
    };
    for _ in 0..9 {
        let told = explain(json!({"path": "/", "ip": "203.0.113.7"}));
        assert_eq!(told["rules"][0]["name"], "api", "{told}");
        assert_eq!(told["rules"][0]["key"], json!(["ip=203.0.113.7"]), "{told}");
        assert!(told.to_string().contains("5/h"), "{told}");
    }
    let blocked = explain(json!({"path": "/", "ip": "203.0.113.7", "user": "mallory"}));
    assert!(blocked["verdict"].as_str().unwrap().contains("block"), "{blocked}");
    let answer = server.request(&json!({"path": "/", "ip": "203.0.113.7"})).allowed();
    assert_eq!(answer.remaining(), 4);
    assert_eq!(server.get("/v1/rules").json()["rules"][0]["allowed"], 1, "explaining counted");
    server.post("/v1/rules/explain", &json!({})).wrong("request");
    server.post("/v1/rules/explain", &json!({"request": {"path": 1}})).wrong("request.path");
}

/// As a ConfigMap is replaced: the file is a link into a directory whose link is swapped.
#[cfg(unix)]
#[test]
fn links_that_are_swapped_are_seen() {
    use std::fs;
    use std::os::unix::fs::symlink;
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("api-links-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    for (version, rules) in [("v1", OLD), ("v2", NEW)] {
        fs::create_dir_all(root.join(version)).unwrap();
        fs::write(root.join(version).join("dashpot.toml"), rules).unwrap();
    }
    symlink("v1", root.join("data")).unwrap();
    symlink("data/dashpot.toml", root.join("dashpot.toml")).unwrap();
    let server = Server::start(&["--config", root.join("dashpot.toml").to_str().unwrap()]);
    assert_eq!(names(&server), ["api"]);
    symlink("v2", root.join("next")).unwrap();
    fs::rename(root.join("next"), root.join("data")).unwrap();
    until("the rules behind the link", || names(&server) == ["api", "more"]);
    fs::remove_dir_all(root).unwrap();
}
