//! Programs that pages name outside of blocks.

use crate::book::{files_below, pages, read, root};

/// The words that come after a text, wherever it is.
fn after<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
    text.split(before).skip(1).filter_map(move |rest| rest.split(ends).next())
}

/// `scripts/test` runs every example; here it is seen that those which are named are there.
#[test]
fn every_example_and_script_that_is_named_is_there() {
    let (mut examples, mut scripts) = (0, 0);
    for page in pages() {
        let text = read(&page);
        for name in after(&text, "cargo run -p ").filter(|name| !name.is_empty()) {
            assert!(
                root().join("examples").join(name).join("src/main.rs").exists(),
                "{page}: {name}"
            );
            examples += 1;
        }
        for name in after(&text, "scripts/").filter(|name| !name.is_empty()) {
            assert!(root().join("scripts").join(name).is_file(), "{page}: scripts/{name}");
            scripts += 1;
        }
    }
    assert!(examples >= 6 && scripts >= 5, "{examples} {scripts}");
}

/// Whoever looks for an example finds it in the book.
#[test]
fn every_example_is_named() {
    let all: String = pages().iter().map(|page| read(page)).collect();
    let mains = files_below("examples").into_iter().filter(|file| file.ends_with("/src/main.rs"));
    for main in mains {
        let name = main.split('/').nth(1).unwrap();
        assert!(all.contains(&format!("{name}`")), "{name}");
    }
}

/// The text of scripts for scripts is none of these pages.
#[test]
fn words_after_a_text() {
    let found: Vec<_> = after("a scripts/b, `scripts/c-d` scripts/ e", "scripts/").collect();
    assert_eq!(found, ["b", "c-d", ""]);
}
