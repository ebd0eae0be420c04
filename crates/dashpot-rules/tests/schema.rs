//! The JSON Schema: for editors, and so that no key goes without a word about it.

use dashpot_rules::schema;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

/// Visits each schema in it, with the path to it.
fn visit(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    let Some(map) = schema.as_object() else { return };
    for (key, value) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        visit(value, &format!("{path}.{key}"), look);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner @ Value::Object(_)) = map.get(key) {
            visit(inner, &format!("{path}[]"), look);
        }
    }
    for inner in map.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        visit(inner, path, look);
    }
}

/// What the schema says of a key, wherever it is among alternatives.
fn find<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let map = schema.as_object()?;
    let own = map.get("properties").and_then(|properties| properties.get(key));
    let any = map.get("additionalProperties").filter(|inner| inner.is_object());
    let below = map.get("items").and_then(|items| find(items, key));
    let one = || map.get("anyOf")?.as_array()?.iter().find_map(|inner| find(inner, key));
    if map.contains_key("properties") {
        return own;
    }
    own.or(any).or(below).or_else(one)
}

#[test]
fn it_says_what_it_is() {
    let schema = schema();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["title"].is_string());
}

#[test]
fn tables_have_the_keys_that_are_known_and_no_other() {
    let mut tables = 0;
    visit(&schema(), "", &mut |path, schema| {
        if schema.get("properties").is_some() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            assert_eq!(schema["type"], "object", "{path}");
            tables += 1;
        } else if schema["type"] == "object" {
            // Names that are free to choose; what they stand for is not.
            assert!(schema["additionalProperties"].is_object(), "{path}");
        }
    });
    assert!(tables >= 10, "{tables}");
}

#[test]
fn every_key_is_described() {
    visit(&schema(), "", &mut |path, schema| {
        for (key, value) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let text = value["description"].as_str().unwrap_or_default();
            assert!(text.len() > 5 && text.ends_with('.'), "{path}.{key}: {text:?}");
        }
    });
}

#[test]
fn what_is_required_exists() {
    visit(&schema(), "", &mut |path, schema| {
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let key = key.as_str().unwrap();
            assert!(schema["properties"].get(key).is_some(), "{path}.{key}");
        }
    });
    let schema = schema();
    assert_eq!(find(&schema, "rule").unwrap()["items"]["required"], serde_json::json!(["name"]));
}

/// Sees that every key of a table, and of those in it, is in the schema.
fn compare(schema: &Value, table: &DeTable<'_>, path: &str) {
    for (key, value) in table {
        let path = format!("{path}.{}", key.get_ref());
        let inner = find(schema, key.get_ref());
        let inner = inner.unwrap_or_else(|| panic!("{path} is unknown"));
        match value.get_ref() {
            DeValue::Table(table) => compare(inner, table, &path),
            DeValue::Array(items) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|table| compare(inner, table, &path));
            }
            _ => {}
        }
    }
}

#[test]
fn every_key_of_the_example_is_in_it() {
    let example = DeTable::parse(include_str!("common/example.toml")).unwrap();
    compare(&schema(), example.get_ref(), "");
}

#[test]
#[should_panic(expected = ".rule.limit is unknown")]
fn a_key_that_is_not_in_it_would_be_seen() {
    compare(&schema(), DeTable::parse("[[rule]]\nlimit = 5").unwrap().get_ref(), "");
}
