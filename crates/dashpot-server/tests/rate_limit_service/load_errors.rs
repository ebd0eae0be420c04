//! YAML that is wrong: it does not start, and says where.

use crate::scene::refusal;

/// What is wrong begins after `»`, which is not part of the file.
const MARK: char = '»';

/// Where the mark is, and the file without it.
fn marked(text: &str) -> (String, String) {
    let at = text.find(MARK).unwrap_or_else(|| panic!("no mark in {text}"));
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (format!("wrong.yaml:{line}:{column}"), text.replace(MARK, ""))
}

/// Told with this word, at the mark; or at least in its line, if where in it is a matter of taste.
#[track_caller]
fn is_told(text: &str, word: &str, exactly: bool) {
    let (mut place, text) = marked(text);
    if !exactly {
        place.truncate(place.rfind(':').unwrap() + 1);
    }
    let told = refusal(&[("wrong.yaml", &text)], &[]);
    let line = told.lines().find(|line| line.contains(&place));
    let line = line.unwrap_or_else(|| panic!("not at {place}: {told}\n{text}"));
    assert!(line.contains(word), "without {word:?}: {told}");
}

/// A file with these lines in its one descriptor.
fn with(lines: &str) -> String {
    let lines = lines.replace('\n', "\n    ");
    format!("domain: d\ndescriptors:\n  - key: k\n    {lines}\n")
}

#[test]
fn keys_nobody_knows() {
    for (text, word) in [
        ("domain: d\n»descriptor:\n  - key: k\n", "descriptor"),
        ("»Domain: d\ndescriptors:\n  - key: k\n", "Domain"),
        ("domain: d\n»version: 2\ndescriptors:\n  - key: k\n", "version"),
        ("domain: d\ndescriptors:\n  - »kye: k\n", "kye"),
        (&with("»values: v"), "values"),
        (&with("»rate_limits: { unit: day, requests_per_unit: 1 }"), "rate_limits"),
        (&with("rate_limit:\n  »units: day\n  requests_per_unit: 1"), "units"),
        (&with("rate_limit: { unit: day, »request_per_unit: 1 }"), "request_per_unit"),
        (&with("rate_limit: { unit: day, requests_per_unit: 1, »burst: 3 }"), "burst"),
        (&with("»shadow: true"), "shadow"),
        (&with("»algorithm: token-bucket"), "algorithm"),
        (
            &with("rate_limit:\n  unit: day\n  requests_per_unit: 1\n  replaces:\n    - »nam: x"),
            "nam",
        ),
        (
            &with("descriptors:\n  - key: a\n    descriptors:\n      - key: b\n        »bad: 1"),
            "bad",
        ),
        // In their place they are right, and here they are not.
        (&with("»unit: day"), "unit"),
        (&with("rate_limit: { unit: day, »shadow_mode: true }"), "shadow_mode"),
        ("domain: d\n»key: k\n", "key"),
    ] {
        is_told(text, word, true);
    }
}

#[test]
fn what_is_known_there_and_not_done_here() {
    is_told(&with("»quota_mode: true"), "quota_mode", true);
    is_told(&with("»metadata:\n  some: thing"), "metadata", true);
}

#[test]
fn units() {
    for (value, word) in [
        ("»fortnight", "fortnight"),
        ("»days", "days"),
        ("»unknown", "unknown"),
        ("»''", ""),
        ("»3", ""),
        ("»[day]", ""),
    ] {
        let text = with(&format!("rate_limit:\n  unit: {value}\n  requests_per_unit: 1"));
        is_told(&text, word, true);
    }
    is_told(&with("»rate_limit: { requests_per_unit: 1 }"), "unit", false);
    is_told(&with("»rate_limit: {}"), "unit", false);
}

#[test]
fn an_unlimited_limit_has_no_unit() {
    let text = with("»rate_limit: { unlimited: true, unit: day }");
    is_told(&text, "unlimited", false);
    let text = with("»rate_limit: { unlimited: true, unit: day, requests_per_unit: 3 }");
    is_told(&text, "unlimited", false);
}

#[test]
fn the_same_twice() {
    let same = "domain: d\ndescriptors:\n  - key: k\n  - key: a\n  - »key: k\n";
    is_told(same, "k", false);
    let same = "domain: d\ndescriptors:\n  - key: k\n    value: v\n  - key: k\n  - »key: k\n    value: v\n";
    is_told(same, "k", false);
    let inner = with("descriptors:\n  - key: a\n    value: x*\n  - »key: a\n    value: x*");
    is_told(&inner, "a", false);
    // A key of YAML itself.
    is_told(&with("shadow_mode: true\n»shadow_mode: false"), "", false);
    is_told("domain: d\n»domain: e\n", "", false);
}

#[test]
fn domains() {
    is_told("domain: »''\ndescriptors:\n  - key: k\n", "domain", true);
    is_told("»descriptors:\n  - key: k\n", "domain", false);
    is_told("domain: »\ndescriptors:\n  - key: k\n", "domain", false);
    is_told("domain: »[d]\ndescriptors:\n  - key: k\n", "", false);
}

#[test]
fn keys_that_are_empty() {
    is_told("domain: d\ndescriptors:\n  - key: »''\n", "key", true);
    is_told("domain: d\ndescriptors:\n  - »value: v\n", "key", false);
    is_told("domain: d\ndescriptors:\n  - key: »\n", "", false);
    is_told(&with("descriptors:\n  - key: »''\n    value: v"), "key", true);
}

#[test]
fn replacing_oneself_or_nobody() {
    let replaces = |list: &str| {
        with(&format!(
            "rate_limit:\n  name: me\n  unit: day\n  requests_per_unit: 1\n  replaces:\n    - {list}"
        ))
    };
    is_told(&replaces("name: »me"), "me", false);
    is_told(&replaces("name: »''"), "name", false);
    is_told(&replaces("»{}"), "name", false);
    is_told(&replaces("name: other\n    - name: »me"), "me", false);
}

#[test]
fn sharing_without_a_star() {
    is_told(&with("value: v\n»share_threshold: true"), "share_threshold", false);
    is_told(&with("»share_threshold: true"), "share_threshold", false);
}

#[test]
fn values_of_another_type() {
    for (text, word) in [
        (with("rate_limit: »5"), ""),
        (with("rate_limit: »[]"), ""),
        (with("rate_limit: { unit: day, requests_per_unit: »many }"), "many"),
        (with("rate_limit: { unit: day, requests_per_unit: »-1 }"), "-1"),
        (with("rate_limit: { unit: day, requests_per_unit: »1.5 }"), "1.5"),
        (with("rate_limit: { unit: day, requests_per_unit: »4294967296 }"), "4294967296"),
        (with("rate_limit: { unlimited: »maybe }"), "maybe"),
        (with("rate_limit: { unit: day, name: »[x] }"), ""),
        (with("rate_limit: { unit: day, replaces: »me }"), ""),
        (with("rate_limit: { unit: day, replaces: [»me] }"), ""),
        (with("shadow_mode: »maybe"), "maybe"),
        (with("shadow_mode: »3"), ""),
        (with("descriptors: »text"), ""),
        (with("descriptors: [»text]"), ""),
        (with("value: »{ a: b }"), ""),
        ("domain: d\ndescriptors: »text\n".to_owned(), ""),
        ("domain: d\ndescriptors:\n  - »text\n".to_owned(), ""),
        ("domain: d\ndescriptors:\n  - key: »[k]\n".to_owned(), ""),
        ("»- domain: d\n".to_owned(), ""),
        ("»text\n".to_owned(), ""),
    ] {
        is_told(&text, word, false);
    }
}

#[test]
fn text_that_is_no_yaml() {
    for text in [
        "domain: d\ndescriptors:\n  - key: »'k\n",
        "domain: d\ndescriptors: »[\n",
        "domain: d\ndescriptors:\n»\t- key: k\n",
        "domain: d\n»  descriptors: []\n",
        "domain: d\ndescriptors: »*nothing\n",
    ] {
        let (_, text) = marked(text);
        let told = refusal(&[("wrong.yaml", &text)], &[]);
        // Where a reader of YAML notices is its own affair, but it says where.
        let place = told.split("wrong.yaml:").nth(1).unwrap_or_else(|| panic!("{told}"));
        let mut numbers = place.split(':').map(|part| part.trim().parse::<usize>());
        let [line, column] = [(); 2].map(|()| numbers.next().and_then(Result::ok).unwrap_or(0));
        assert!((2..=4).contains(&line) && column >= 1, "{told}\n{text}");
    }
}
