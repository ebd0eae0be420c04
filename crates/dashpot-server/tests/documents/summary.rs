//! The table of contents.

use std::collections::BTreeSet;

use crate::book::{chapters, read};
use crate::links::targets;

/// mdBook shows what is listed, and nothing else; and a page has one place in it.
#[test]
fn every_page_is_listed_once_and_is_there() {
    let listed = targets(&read("docs/SUMMARY.md"));
    let listed: Vec<String> = listed.iter().map(|target| format!("docs/{target}")).collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "twice: {listed:?}");
    let there = chapters();
    assert_eq!(once, there.iter().collect());
}

/// Whoever reads the first page finds all others from it, gateways by their own.
#[test]
fn the_introduction_leads_everywhere() {
    let known = targets(&read("docs/introduction.md"));
    let known: BTreeSet<_> = known.iter().map(|link| link.split('#').next().unwrap()).collect();
    for page in chapters() {
        let page = page.strip_prefix("docs/").unwrap();
        let is_there = known.contains(page) || page.starts_with("gateways/");
        assert!(is_there || page == "introduction.md", "{page}");
    }
}

/// Nothing in it makes a reader's browser ask somebody else.
#[test]
fn the_book_is_built_from_here() {
    let settings = read("docs/book.toml");
    for line in ["src = \".\"", "create-missing = false", "runnable = false"] {
        assert!(settings.lines().any(|known| known == line), "{line}");
    }
    assert!(!settings.contains("://"), "{settings}");
}
