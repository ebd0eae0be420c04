//! What an editor is told about it.

use std::collections::BTreeSet;

use dashpot_rules::schema;
use serde_json::{Value, json};

fn keys(table: &Value) -> BTreeSet<&str> {
    table["properties"].as_object().expect("a table").keys().map(String::as_str).collect()
}

fn rule() -> Value {
    schema()["properties"]["rule"]["items"]["properties"].take()
}

#[test]
fn tables_have_these_keys_and_no_other() {
    let rule = rule();
    for (table, expected) in [
        ("adaptive", "cpu errors latency floor down up tick"),
        ("capacity", "limit latency errors min max tick places wait"),
        ("classes", "normal background"),
    ] {
        assert_eq!(keys(&rule[table]), expected.split(' ').collect(), "{table}");
        assert_eq!(rule[table]["additionalProperties"], json!(false), "{table}");
    }
}

#[test]
fn a_capacity_needs_a_limit_and_nothing_else() {
    assert_eq!(rule()["capacity"]["required"], json!(["limit"]));
    assert_eq!(rule()["adaptive"]["required"], json!([]));
    assert_eq!(rule()["classes"]["required"], json!([]));
}

#[test]
fn a_priority_is_of_a_class_and_needs_no_weight() {
    let priority = &schema()["properties"]["priority"]["items"];
    assert_eq!(priority["required"], json!(["name"]));
    let classes = priority["properties"]["class"]["enum"].as_array().expect("words");
    let classes: BTreeSet<_> = classes.iter().filter_map(Value::as_str).collect();
    assert_eq!(classes, BTreeSet::from(["background", "critical", "normal"]));
}
