//! Every link leads to a file that is there, and to a heading of it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::book::{pages, prose, read, root};

/// Where a text's links lead, pictures included.
pub(crate) fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let ends = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.map(str::to_owned).collect()
}

/// What GitHub calls the headings of a text.
fn anchors(text: &str) -> Vec<String> {
    let mut seen = BTreeMap::<String, u32>::new();
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        let is_heading = heading.len() < line.len() && heading.starts_with(' ');
        if is_fenced || !is_heading {
            continue;
        }
        let anchor = anchor(heading.trim());
        let times = seen.entry(anchor.clone()).or_default();
        found.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    found
}

fn anchor(heading: &str) -> String {
    // Of a link in it, the text is what counts.
    let mut text = String::new();
    for (nth, part) in heading.split("](").enumerate() {
        text += if nth == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) };
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut followed = 0;
    let others = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md"];
    let others = others.into_iter().chain(["docs/SUMMARY.md"]).map(str::to_owned);
    let mut wrong = Vec::new();
    for page in pages().into_iter().chain(others) {
        let text = read(&page);
        let directory = Path::new(&page).parent().unwrap();
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, fragment) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { page.clone().into() } else { directory.join(file) };
            if !root().join(&file).exists() {
                wrong.push(format!("{page}: {target} is not there"));
            } else if !fragment.is_empty() {
                let known = anchors(&read(file.to_str().unwrap()));
                if !known.iter().any(|known| known == fragment) {
                    wrong.push(format!("{page}: {target} is none of {known:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 200, "only {followed}");
}

#[test]
fn headings_are_called_as_github_calls_them() {
    let text = "# May it? `POST /v1/check`\n## `[store]`\n```\n# none\n```\n## A [link](b.md), 2 words\n## `[store]`\n#!/bin/sh\n";
    assert_eq!(anchors(text), ["may-it-post-v1check", "store", "a-link-2-words", "store-1"]);
}

#[test]
fn links_are_found() {
    let text = "[a](b.md) and `[c](d.md)`, ![e](f.svg)\n```\n[g](h)\n```\n[`[i]`](j.md#k)\n";
    assert_eq!(targets(text), ["b.md", "f.svg", "j.md#k"]);
}
