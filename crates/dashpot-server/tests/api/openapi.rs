//! /openapi.json says the same as the page.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::Server;

const RULES: &str = "[[rule]]\nname = 'r'\nlimits = ['1/h']";

/// What the page documents.
const ROUTES: &[(&str, &str)] = &[
    ("post", "/v1/check"),
    ("post", "/v1/settle"),
    ("get", "/v1/forward-auth"),
    ("post", "/v1/keys/peek"),
    ("post", "/v1/keys/reset"),
    ("post", "/v1/keys/block"),
    ("post", "/v1/keys/unblock"),
    ("get", "/v1/keys/top"),
    ("get", "/v1/rules"),
    ("post", "/v1/rules/reload"),
    ("post", "/v1/rules/diff"),
    ("post", "/v1/rules/explain"),
    ("get", "/v1/health"),
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
    ("post", "/json"),
    ("get", "/healthcheck"),
    ("get", "/"),
    ("get", "/dashboard/app.js"),
    ("get", "/dashboard/style.css"),
    ("get", "/v1/events"),
    ("post", "/v1/simulate"),
];

fn description(server: &Server) -> Value {
    let answer = server.get("/openapi.json").is(200);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{answer:?}");
    answer.json()
}

#[test]
fn it_lists_what_the_page_lists_and_nothing_else() {
    let told = description(&Server::by(RULES));
    assert!(told["openapi"].as_str().unwrap().starts_with("3."), "{}", told["openapi"]);
    let paths = told["paths"].as_object().unwrap();
    let mut seen = BTreeSet::new();
    for (path, operations) in paths {
        for method in operations.as_object().unwrap().keys() {
            if !["parameters", "summary", "description"].contains(&method.as_str()) {
                seen.insert(path.as_str());
            }
        }
    }
    let documented: BTreeSet<&str> = ROUTES.iter().map(|(_, path)| *path).collect();
    assert_eq!(seen, documented);
    for (method, path) in ROUTES {
        assert!(paths[*path].get(*method).is_some(), "{method} {path}");
    }
}

#[test]
fn everything_it_lists_answers() {
    let server = Server::by(RULES);
    let told = description(&server);
    let mut client = server.client();
    for (path, operations) in told["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            // What goes on for ever is not waited for.
            let method = if path == "/v1/events" { "head" } else { method };
            let answer = client.ask(&method.to_uppercase(), path, &[], b"");
            assert!(answer.status != 404 && answer.status != 405, "{method} {path}: {answer:?}");
            let status = answer.status.to_string();
            let class = format!("{}XX", &status[..1]);
            let told = operation["responses"].as_object().unwrap();
            let known = told.contains_key(&status) || told.contains_key(&class);
            assert!(known, "{status} is not among {:?} of {method} {path}", told.keys());
        }
    }
}

#[test]
fn what_can_happen_to_a_question_is_among_the_responses() {
    let told = description(&Server::by(RULES));
    for (path, statuses) in [
        ("/v1/check", &["200", "429", "400", "413", "415", "503"][..]),
        ("/v1/settle", &["200", "404", "409", "410", "503"]),
        ("/v1/keys/peek", &["200", "400", "401", "403"]),
        ("/v1/rules/reload", &["200", "400", "401", "403"]),
    ] {
        let responses = told["paths"][path]["post"]["responses"].as_object().unwrap();
        for status in statuses {
            assert!(responses.contains_key(*status), "{status} of {path}");
        }
    }
    // A wrong `n` is a 400.
    let top = told["paths"]["/v1/keys/top"]["get"]["responses"].as_object().unwrap();
    assert!(top.contains_key("400"), "{:?}", top.keys());
}

#[test]
fn every_reference_leads_somewhere() {
    let told = description(&Server::by(RULES));
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    found.push(reference.clone());
                }
                fields.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let mut references = Vec::new();
    walk(&told, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(told.pointer(pointer).is_some(), "{reference}");
    }
}

/// Looks whether an answer has what the description requires, and nothing that it does not know.
#[track_caller]
fn fits(told: &Value, schema: &str, answer: &Value) {
    let schema = &told["components"]["schemas"][schema];
    let known = schema["properties"].as_object().unwrap();
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(answer.get(name.as_str().unwrap()).is_some(), "no {name}, but required: {answer}");
    }
    for name in answer.as_object().unwrap().keys() {
        assert!(known.contains_key(name), "`{name}` is not described: {answer}");
    }
}

#[test]
fn answers_are_as_described() {
    let server = Server::by(RULES);
    let told = description(&server);
    let reference = |path: &str, method: &str, status: &str| -> String {
        let content = &told["paths"][path][method]["responses"][status]["content"];
        let schema = &content.as_object().unwrap().values().next().unwrap()["schema"];
        schema["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    let ask = json!({"request": {"path": "/"}, "reserve": true});
    let allowed = server.check(&ask).allowed().json();
    fits(&told, &reference("/v1/check", "post", "200"), &allowed);
    let denied = server.check(&ask).denied("limited").json();
    fits(&told, &reference("/v1/check", "post", "429"), &denied);
    let wrong = server.check(&json!({"key": 1})).problem(400).json();
    fits(&told, &reference("/v1/check", "post", "400"), &wrong);
    let simulate = json!({"traffic": ["boundary"], "limits": ["10/10s"]});
    let simulated = server.post("/v1/simulate", &simulate).is(200).json();
    fits(&told, &reference("/v1/simulate", "post", "200"), &simulated);
    for path in ["/v1/rules", "/v1/keys/top", "/v1/health"] {
        fits(&told, &reference(path, "get", "200"), &server.get(path).is(200).json());
    }
}

#[test]
fn the_front_page_names_every_route() {
    let page = Server::by(RULES).get("/").is(200).text();
    for (_, path) in ROUTES {
        assert!(page.contains(path), "{path}: {page}");
    }
}
