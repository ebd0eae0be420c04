//! Times of stress, written wrongly: `adaptive`, `capacity`, `classes` and what a priority says of them.

mod adaptive;
mod capacity;
mod classes;

use std::path::Path;

use dashpot_rules::{RuleSet, Source};

use super::errors;

fn parse(file: &str) -> Result<RuleSet, String> {
    let sources = vec![Source::new("dashpot.toml", file)];
    RuleSet::from_sources(sources, Path::new(".")).map_err(|errors| errors.to_string())
}

/// Each of these lines is told at its column, in these words and no others.
#[track_caller]
fn each_is_told(before: &str, lines: &[(&str, usize, &str)]) {
    let number = before.lines().count() + 1;
    for (line, column, words) in lines {
        let told = errors(&format!("{before}{line}\n"));
        let first = told.lines().next().unwrap_or_default();
        assert_eq!(first, format!("dashpot.toml:{number}:{column}: error: {words}"), "{line}");
        assert_eq!(told.matches("error: ").count(), 1, "{line} is wrong once: {told}");
    }
}

/// There is nothing wrong with any of these.
#[track_caller]
fn each_is_fine(before: &str, lines: &[&str]) {
    for line in lines {
        if let Err(told) = parse(&format!("{before}{line}\n")) {
            panic!("{line}: {told}");
        }
    }
}
