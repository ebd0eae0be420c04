//! What the service says of itself knows how it is told.

use std::fs;

use serde_json::Value;

use super::{Patient, quick};

fn described(patient: &Patient) -> Value {
    patient.client().get("/openapi.json").json()
}

/// The definition that something of the description refers to.
fn resolved<'a>(all: &'a Value, place: &'a Value) -> &'a Value {
    match place["$ref"].as_str() {
        Some(reference) => all.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => place,
    }
}

/// Everything there is has been described, all through.
fn fits(all: &Value, schema: &Value, value: &Value) {
    let schema = resolved(all, schema);
    if let Some(items) = value.as_array() {
        items.iter().for_each(|item| fits(all, &schema["items"], item));
    }
    let Some(fields) = value.as_object() else { return };
    for (name, value) in fields {
        let known = &schema["properties"][name];
        assert!(known.is_object(), "`{name}` is not described: {value}");
        fits(all, known, value);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "no {name}: {value}");
    }
}

#[test]
fn the_description_knows_what_may_be_told_and_what_is_answered() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']"));
    patient.suffers();
    let all = described(&patient);
    let post = &all["paths"]["/v1/health"]["post"];
    let asked = &post["requestBody"]["content"]["application/json"]["schema"];
    let fields = resolved(&all, asked)["properties"].as_object().unwrap();
    let mut names: Vec<_> = fields.keys().collect();
    names.sort();
    assert_eq!(names, ["cpu", "errors", "for", "rule", "slow"]);
    let schema = |method: &str| {
        let responses = &all["paths"]["/v1/health"][method]["responses"];
        responses["200"]["content"]["application/json"]["schema"].clone()
    };
    let answer = patient.client().post("/v1/health", r#"{"errors":1}"#).json();
    fits(&all, &schema("post"), &answer);
    fits(&all, &schema("get"), &patient.health());
}

/// All that it does answer is among the responses, as of others who take a body.
#[test]
fn the_description_knows_what_else_is_answered() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']"));
    let all = described(&patient);
    let responses = &all["paths"]["/v1/health"]["post"]["responses"];
    for status in ["200", "400", "401", "403", "413", "415"] {
        assert!(responses.get(status).is_some(), "{status}: {responses}");
    }
}

#[test]
fn the_front_page_names_it() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']"));
    let page = patient.client().get("/").body;
    for method in ["GET", "POST"] {
        let named = page.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(method) && words.next() == Some("/v1/health")
        });
        assert!(named, "{method}: {page}");
    }
}

/// The page is the reference, and the description is the same for machines.
#[test]
fn the_page_has_every_route_of_the_description() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    let page = fs::read_to_string(page).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let patient = Patient::by(&quick("r", "limits = ['10/day']"));
    let post = &described(&patient)["paths"]["/v1/health"]["post"];
    assert!(post.is_object());
    let row = rows.iter().find(|row| row.contains("/v1/health")).unwrap();
    assert!(row.contains("POST"), "{row}");
}
