//! The rule reference names every key there is, and no other; and what it shows is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use dashpot_rules::{RuleSet, schema};
use serde_json::Value;

const REFERENCE: &str = include_str!("../../../docs/rules.md");

/// The section of the page each table of the file is explained in.
const SECTIONS: [(&str, &str); 14] = [
    ("store", "## `[store]`"),
    ("memory", "## `[memory]`"),
    ("serve", "## `[serve]`"),
    ("proxy", "## `[proxy]`"),
    ("identity", "## `[identity]`"),
    ("identity.jwt", "`[identity.jwt]`:"),
    ("headers", "## `[headers]`"),
    ("priority", "## `[[priority]]`"),
    ("rule", "## `[[rule]]`"),
    ("rule.match", "### match"),
    ("rule.on_deny", "### on_deny"),
    ("rule.adaptive", "### adaptive"),
    ("rule.capacity", "### capacity"),
    ("rule.classes", "### classes"),
];

/// The keys of each table that has known ones.
fn known(schema: &Value, path: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    let schema = schema.get("items").unwrap_or(schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    found.insert(path.to_owned(), properties.keys().cloned().collect());
    for (key, property) in properties {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        known(property, &path, found);
    }
}

/// The keys in the first column of the first table after a heading.
fn explained(heading: &str) -> BTreeSet<String> {
    let (_, after) = REFERENCE.split_once(&format!("\n{heading}\n")).expect(heading);
    let rows = after.lines().skip_while(|line| !line.starts_with("| ")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let column = rows.map(|row| row.split('|').nth(1).unwrap_or_default());
    column.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_key_is_explained_and_no_other() {
    let mut tables = BTreeMap::new();
    known(&schema(), "", &mut tables);
    // A priority matches as a rule does, and is explained there.
    assert_eq!(tables.remove("priority.match"), tables.get("rule.match").cloned());
    let top = tables.remove("").unwrap();
    for key in &top {
        assert!(REFERENCE.contains(&format!("[{key}]")), "[{key}] is not mentioned");
    }
    for (table, heading) in SECTIONS {
        let keys = tables.remove(table).unwrap_or_else(|| panic!("there is no [{table}]"));
        assert_eq!(explained(heading), keys, "[{table}]");
    }
    assert_eq!(tables, BTreeMap::new(), "tables without a section");
}

#[test]
fn every_fact_is_explained() {
    for fact in ["ip", "user", "api_key", "tier", "method", "path", "host"] {
        assert!(explained("## Facts").contains(fact), "{fact}");
    }
    for kind in ["header", "cookie", "query", "param", "json", "form", "jwt", "fact"] {
        let is_it = |known: &String| known.starts_with(&format!("{kind}:"));
        assert!(explained("## Facts").iter().any(is_it), "{kind}");
    }
}

#[test]
fn what_it_shows_can_be_loaded() {
    let blocks = REFERENCE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut files = 0;
    for block in blocks.filter(|block| !block.starts_with("9f86")) {
        RuleSet::parse(block).unwrap_or_else(|errors| panic!("{errors}"));
        files += 1;
    }
    assert!(files >= 2);
}

/// The examples' own files, too: nobody should learn from a mistake.
#[test]
fn the_examples_can_be_loaded() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = 0;
    for example in fs::read_dir(examples).unwrap() {
        let file = example.unwrap().path().join("rules.toml");
        if file.exists() {
            RuleSet::load(&file).unwrap_or_else(|error| panic!("{error}"));
            files += 1;
        }
    }
    assert!(files >= 7);
}
