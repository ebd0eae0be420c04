//! The text of /metrics (OpenMetrics 1.0), read as strictly as Prometheus may.

use std::collections::{BTreeMap, BTreeSet};

/// A series: its name and its labels in order of their names.
type Series = (String, BTreeMap<String, String>);

/// All that was told.
pub(crate) struct Metrics {
    pub(crate) series: BTreeMap<Series, f64>,
    /// What kind each family is.
    pub(crate) families: BTreeMap<String, String>,
}

impl Metrics {
    /// Reads it, or panics with what is wrong.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("it ends with the marker");
        let (mut series, mut families) = (BTreeMap::new(), BTreeMap::new());
        let mut helped = BTreeSet::new();
        let mut family = String::new();
        for line in body.lines() {
            assert!(!line.is_empty() && line.trim() == line, "{line:?}");
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect(line);
                assert!(!words.is_empty() && helped.insert(name.to_owned()), "{line}");
                name.clone_into(&mut family);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect(line);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(family, name, "TYPE follows HELP: {line}");
                assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            } else if let Some(unit) = line.strip_prefix("# UNIT ") {
                assert!(unit.starts_with(&family), "{line}");
            } else {
                assert!(!line.starts_with('#'), "{line}");
                let (key, value) = sample(line);
                let kind = families.get(&family).expect(line);
                let rest =
                    key.0.strip_prefix(&family).unwrap_or_else(|| panic!("{family}: {line}"));
                let endings: &[&str] = match kind.as_str() {
                    "counter" => &["_total"],
                    "gauge" => &[""],
                    _ => &["_bucket", "_sum", "_count"],
                };
                assert!(endings.contains(&rest), "{kind}: {line}");
                assert!(series.insert(key, value).is_none(), "told twice: {line}");
            }
        }
        assert_eq!(helped.len(), families.len(), "each has HELP and TYPE");
        Self { series, families }
    }

    #[track_caller]
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let key = (name.to_owned(), labels);
        *self.series.get(&key).unwrap_or_else(|| panic!("no {key:?} in {:?}", self.series.keys()))
    }
}

fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    text.bytes().next().is_some_and(letter) && text.bytes().all(|b| letter(b) || b.is_ascii_digit())
}

#[track_caller]
fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after, line);
            assert!(labels.insert(label.to_owned(), value).is_none(), "`{label}` twice: {line}");
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = after.strip_prefix('}').expect(line);
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').expect(line);
    assert!(!value.contains(' '), "no time stamps: {line}");
    let value: f64 = value.parse().expect(line);
    assert!(value.is_finite() && value >= 0.0, "{line}");
    ((name.to_owned(), labels), value)
}

fn quoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('"' | '\\'))) => value.push(escaped),
                other => panic!("{other:?} is not escaped so: {line}"),
            },
            _ => value.push(character),
        }
    }
    panic!("a label's value does not end: {line}");
}
