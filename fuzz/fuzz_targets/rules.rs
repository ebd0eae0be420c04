#![no_main]

//! Rule files.

use dashpot_rules::{Problem, RuleSet, diff};
use libfuzzer_sys::fuzz_target;

/// Where a password is in a URL, and nowhere else, nobody is told it.
const PASSWORD: &str = "hunter2";
const URL: &str = "\"redis://u:hunter2@h\"";

fuzz_target!(|text: &str| {
    // Rules may name files; those of this machine are none of ours.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let problems = match RuleSet::parse(text) {
        Ok(set) => {
            let again = RuleSet::parse(text).expect("it was right a moment ago");
            assert_eq!(diff(&set, &again), Vec::<String>::new());
            set.advice().to_vec()
        }
        Err(errors) => {
            assert!((1..=100).contains(&errors.problems().len()));
            errors.problems().to_vec()
        }
    };
    assert!(problems.iter().map(|problem| problem.place().line).is_sorted());
    let is_secret = !text.replace(URL, "").contains(PASSWORD);
    for problem in &problems {
        assert!(is_in(problem, text), "{problem:?}");
        let told = problem.to_string();
        assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
        assert!(!is_secret || !told.contains(PASSWORD), "{told}");
    }
});

/// Whether the place is one of the text; its end is one, too.
fn is_in(problem: &Problem, text: &str) -> bool {
    let place = problem.place();
    let Some(line) = text.split('\n').nth(place.line - 1) else { return false };
    let length = line.chars().count();
    (1..=length + 1).contains(&place.column) && place.column + place.width <= length + 2
}
