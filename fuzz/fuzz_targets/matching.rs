#![no_main]

//! Which rules a path and a host match: the same by the index as each rule alone, and however it is written.

use std::sync::LazyLock;

use dashpot_fuzz::parts::split;
use dashpot_rules::{Fact, Facts, RuleSet};
use libfuzzer_sys::fuzz_target;

const RULES: [&str; 14] = [
    "path = '/'",
    "path = '/*'",
    "path = '/login'",
    "path = '/users/{id}'",
    "path = '/users/{id}/posts/*'",
    "path = '/users/me'",
    "path = '/a/%2A/b'",
    "path = ['/api/v1/*', '/api/v2']",
    "path = '/ü/x y'",
    "host = 'example.com'",
    "host = '*.example.com'",
    "host = ['*.a.example.com', 'b.example']\npath = '/api/*'",
    "method = ['POST', 'DELETE']\npath = '/login'",
    "method = 'GET'\nhost = 'example.com'\npath = '/*'",
];

static ALL: LazyLock<RuleSet> = LazyLock::new(|| {
    set(&RULES.iter().enumerate().map(|(n, rule)| written(n, rule)).collect::<String>())
});
static EACH: LazyLock<Vec<RuleSet>> =
    LazyLock::new(|| RULES.iter().enumerate().map(|(n, rule)| set(&written(n, rule))).collect());

fn written(number: usize, rule: &str) -> String {
    let conditions: String = rule.lines().map(|line| format!("match.{line}\n")).collect();
    format!("[[rule]]\nname = 'r{number}'\nlimits = ['5/s']\n{conditions}")
}

fn set(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap_or_else(|errors| panic!("{errors}"))
}

fuzz_target!(|data: &[u8]| {
    let (method, rest) = split(data, b' ');
    let (path, host) = split(rest, b'\n');
    let texts = (str::from_utf8(method), str::from_utf8(path), str::from_utf8(host));
    let (Ok(method), Ok(path), Ok(host)) = texts else { return };
    if !path.starts_with('/') {
        return;
    }
    let found = matches(&ALL, method, path, host);
    let alone: Vec<_> = EACH.iter().flat_map(|one| matches(one, method, path, host)).collect();
    assert_eq!(found, alone);
    for other in spellings(path) {
        assert_eq!(matches(&ALL, method, &other, host), found, "{other} is {path}");
    }
});

fn matches<'r>(set: &'r RuleSet, method: &str, path: &str, host: &str) -> Vec<&'r str> {
    let request = Facts::new().with(Fact::Path, path).with(Fact::Method, method);
    let request = request.with(Fact::Host, host);
    set.select(&request).plan(&request).keys().map(|(rule, ..)| rule.name()).collect()
}

/// Other ways to write it, which servers take for the same.
fn spellings(path: &str) -> Vec<String> {
    let escaped = |byte: u8| format!("%{byte:02x}");
    let letters: String = { path.bytes() }
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() { escaped(byte) } else { char::from(byte).into() }
            },
        )
        .collect();
    let mut others = vec![format!("{path}/"), format!("/{path}"), path.replace('/', "//")];
    // A digit after a percent is part of an escape.
    if path.is_ascii() && !path.contains('%') {
        others.push(letters);
    }
    // Where there are dots, rules are about what they come to and about what they say.
    if !path.contains("/.") && !path.contains("%2") {
        others.push(format!("/.{path}"));
    }
    others
}
