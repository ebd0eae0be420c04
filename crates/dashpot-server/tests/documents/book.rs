//! The pages, and what is fenced in them.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the repository, by its path from the root.
pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Everything below docs/ that is to be read, as `docs/…`.
pub(crate) fn chapters() -> Vec<String> {
    let mut found = Vec::new();
    for file in files_below("docs") {
        if file.ends_with(".md") && file != "docs/SUMMARY.md" {
            found.push(file);
        }
    }
    found
}

/// The README and the chapters.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = chapters();
    pages.push("README.md".to_owned());
    pages
}

/// Paths from the root, in order.
pub(crate) fn files_below(directory: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// As in `rust`, of `rust,no_run`.
    pub(crate) kind: String,
    /// All that is written behind the fence.
    pub(crate) said: String,
    pub(crate) text: String,
    /// If the line before names one, as in: The rules, `dashpot.toml`:
    pub(crate) file: Option<String>,
    /// Whether nothing but empty lines is between the last block and this one.
    pub(crate) follows: bool,
}

/// All fenced blocks of a text, in order.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = text.lines();
    let mut before = "";
    let mut follows = false;
    while let Some(line) = lines.next() {
        let Some(said) = line.trim_start().strip_prefix("```") else {
            if !line.trim().is_empty() {
                before = line;
                follows = false;
            }
            continue;
        };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        let file = before.strip_suffix("`:").and_then(|named| named.rsplit('`').next());
        found.push(Block {
            kind: said.split([',', ' ']).next().unwrap_or_default().to_owned(),
            said: said.to_owned(),
            text: inside.join("\n") + "\n",
            file: file.map(str::to_owned),
            follows,
        });
        (before, follows) = ("", true);
    }
    found
}

/// The blocks of a page that are of a kind.
pub(crate) fn blocks_of(page: &str, kind: &str) -> Vec<String> {
    let all = blocks(&read(page)).into_iter();
    all.filter(|block| block.kind == kind).map(|block| block.text).collect()
}

/// A page without what is fenced, and without code between backticks.
pub(crate) fn prose(text: &str) -> String {
    let mut unfenced = String::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            unfenced.extend([line, "\n"]);
        }
    }
    // Code may go on in the next line, and ends with its paragraph.
    let paragraphs = unfenced.split("\n\n").map(|paragraph| paragraph.split('`').step_by(2));
    paragraphs.flat_map(|parts| parts.chain(["\n\n"])).collect()
}

#[test]
fn what_is_fenced_is_found() {
    let text = "a\n```sh\nb\n```\n\n```rust,no_run\nc\nd\n```\nIn `e/f.toml`:\n\n```\ng\n```\n";
    let found = blocks(text);
    let kinds: Vec<_> = found.iter().map(|block| (&*block.kind, block.follows)).collect();
    assert_eq!(kinds, [("sh", false), ("rust", true), ("", false)]);
    assert_eq!(found[1].said, "rust,no_run");
    assert_eq!((&*found[1].text, &found[1].file), ("c\nd\n", &None));
    assert_eq!(found[2].file.as_deref(), Some("e/f.toml"));
    assert_eq!(prose("a `b\nc` d\n```\ne\n```\n\n`f\n\ng"), "a  d\n\n\n\ng\n\n\n");
}
