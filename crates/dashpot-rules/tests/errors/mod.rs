//! What is said about every mistake there is: where it is, and what to write instead.

mod consistency;
mod exact_only;
mod files;
mod identity;
mod keys;
mod limits;
mod meant;
mod overload;
mod rules;
mod secrets;
mod shape;

use std::path::Path;

use dashpot_rules::{RuleErrors, RuleSet, Severity, Source};

use crate::common::text::dedent;

/// All that is wrong with a file, as it is printed.
fn errors(file: &str) -> String {
    let file = dedent(file);
    let errors = RuleSet::from_sources(vec![Source::new("dashpot.toml", &file)], Path::new("."))
        .expect_err("this file should be refused");
    check_places(&errors, &[("dashpot.toml", &file)]);
    errors.to_string()
}

/// Every place is in its file, and shows its line with the carets under it.
fn check_places(errors: &RuleErrors, files: &[(&str, &str)]) {
    assert!(!errors.problems().is_empty());
    for problem in errors.problems() {
        assert_eq!(problem.severity(), Severity::Error);
        let place = problem.place();
        let (_, text) = files.iter().find(|(name, _)| *name == place.file).expect("a known file");
        // A file that ends too early is wrong at its end, where there is no line.
        let line = text.lines().nth(place.line - 1).unwrap_or_default();
        let length = line.chars().count();
        assert!(place.column >= 1 && place.column <= length + 1, "{problem}");
        assert!(place.width >= 1 && place.column + place.width <= length + 2, "{problem}");
        if !place.excerpt.is_empty() {
            // But for passwords.
            let same = |(shown, written)| shown == written || shown == '*';
            assert!(place.excerpt.chars().zip(line.chars()).all(same), "{problem}");
            assert_eq!(place.excerpt.chars().count(), length, "{problem}");
            let printed = problem.to_string();
            let carets = printed.lines().find(|line| line.trim_start().starts_with("| ^"));
            let carets = carets.or_else(|| printed.lines().find(|line| line.ends_with('^')));
            assert!(carets.is_some(), "{problem}");
        }
        let printed = problem.to_string();
        let start = format!("{}:{}:{}: error: ", place.file, place.line, place.column);
        assert!(printed.starts_with(&start), "{printed}");
    }
}
