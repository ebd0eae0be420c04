//! Whatever a file says: no panic, and every mistake has a place in it.

use std::time::{Duration, Instant};

use dashpot_rules::{Problem, RuleSet};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// As much as a file may say.
const BIG: &str = r#"
[store]
url = ["redis://127.0.0.1:6379", "rediss://user:pass@example.com"]
deadline = "20ms"
on_error = "local"

[memory]
max_keys = 1_000_000
state_file = "dashpot.state"

[identity]
trusted_proxies = ["10.0.0.0/8", "2001:db8::/32"]
client_ip_header = "x-forwarded-for"
ipv6_prefix = 64
user = "header:x-user-id"
api_key = "header:x-api-key"
tier = "header:x-plan"
default_tier = "free"
max_body = 0x10000

[headers]
styles = ["ietf", "x-ratelimit"]
jitter = "5s"
expose = true

[allow]
ip = ["127.0.0.1", "10.0.0.0/8"]

[block]
user = "mallory"

[[priority]]
name = "webhook"
match = { path = "/webhooks/*", header = { x-stadt = "Köln" } }
weight = "unlimited"

[[priority]]
name = "background"
match = { header = { x-batch = "*" } }
weight = 0.5

[[rule]]
name = "login-ip"
match = { method = ["POST", "PUT"], path = ["/login/{id}", "/users/{id}/*"], host = "*.example.com" }
by = ["ip", "param:id"]
limits = ["5/5min"]
algorithm = "sliding-log"
on_store_error = "deny"
on_deny = { status = 403, body = """
nein — 🚲
""", content_type = "text/plain" }

[[rule]]
name = "api"
match = { path = '/api/*', fact = { tenant = "acme" } }
by = ["api_key | user | ip"]
tiers.free = ["60/min", "1000/day"]
tiers.pro = ["6000/min burst 60", "100000/day"]
charge_on = [200, 201]
absent = "skip"
enforce_percent = 50

[[rule]]
name = "shaped"
limits = "10/s"
algorithm = "leaky-bucket"
queue = 20
undelayed = 5
cost = 2
settle = "header:x-cost"
shadow = true

[[rule]]
name = "months"
limits = ["1M/month"]
algorithm = "fixed-window"
zone = "Europe/Berlin"
"#;

/// Things that mean something.
const TOKENS: [&str; 24] = [
    "[[rule]]",
    "[rule]",
    "name",
    "=",
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "\n",
    "limits",
    "\"5/s\"",
    "-1",
    "0",
    "1e400",
    "inf",
    "1979-05-27",
    "\u{0}",
    "é",
    "#",
];

fn is_in(problem: &Problem, text: &str) -> bool {
    let place = problem.place();
    // `split` has a last, empty line where a file ends with a newline: the end is a place, too.
    let Some(line) = text.split('\n').nth(place.line - 1) else { return false };
    let length = line.chars().count();
    (1..=length + 1).contains(&place.column) && place.column + place.width <= length + 2
}

fn survives(text: &str) {
    let problems = match RuleSet::parse(text) {
        Ok(set) => set.advice().to_vec(),
        Err(errors) => {
            assert!(!errors.problems().is_empty());
            let lines: Vec<_> = errors.problems().iter().map(|found| found.place().line).collect();
            assert!(lines.is_sorted(), "{lines:?}");
            errors.problems().to_vec()
        }
    };
    for problem in &problems {
        assert!(is_in(problem, text), "{problem:?} is not in {text:?}");
        let told = problem.to_string();
        assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
    }
}

/// Changes a text somewhere.
fn mutate(text: &mut String, (what, from, to, token): &(u8, Index, Index, &str)) {
    let boundary = |index: &Index| {
        let mut at = index.index(text.len() + 1);
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (one, two) = (boundary(from), boundary(to));
    let (start, end) = (one.min(two), one.max(two).min(one.min(two) + 40));
    let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let slice = text[start..end].to_owned();
    match what % 5 {
        0 => text.replace_range(start..end, ""),
        1 => text.insert_str(start, token),
        2 => text.replace_range(start..end, token),
        3 => text.insert_str(end, &slice),
        _ => {
            let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            let (a, b) = (from.index(words.len()), to.index(words.len()));
            words.swap(a, b);
            *text = words.join(" ");
        }
    }
}

/// A terminal would act on it, and a line of its own would look like one of ours.
#[test]
fn what_is_quoted_of_a_file_is_fit_to_be_printed() {
    let text = "[[rule]]\nname = 'a'\nlimits = '5/s'\nalgorithm = \"fixed\\u001b[2J\\nwindow\"\n";
    let errors = RuleSet::parse(text).unwrap_err();
    let [problem] = errors.problems() else { panic!("{errors}") };
    let told = r"`fixed\u{1b}[2J\nwindow` is not an algorithm";
    assert!(problem.message().starts_with(told), "{}", problem.message());
}

#[test]
fn the_big_file_is_a_good_one() {
    RuleSet::parse(BIG).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        survives(&text);
    }

    #[test]
    fn any_row_of_tokens_is_survived(tokens in prop::collection::vec(select(&TOKENS[..]), 0..40)) {
        survives(&tokens.join(" "));
        survives(&tokens.concat());
    }

    #[test]
    fn a_good_file_that_was_damaged_is_survived(
        changes in prop::collection::vec(
            (any::<u8>(), any::<Index>(), any::<Index>(), select(&TOKENS[..])), 1..6
        )
    ) {
        let mut text = BIG.to_owned();
        for change in &changes {
            mutate(&mut text, change);
        }
        survives(&text);
    }
}

/// Two seconds for a megabyte, however it is built. On a small stack, as other threads have.
fn survives_in_time(text: String) {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let look = move || {
        let start = Instant::now();
        let parsed = RuleSet::parse(&text);
        let took = start.elapsed();
        let told = parsed.map_or_else(|errors| errors.to_string(), |_| String::new());
        assert!(told.len() < MEGABYTE / 4, "{} bytes", told.len());
        took
    };
    // Others may be busy on this machine, too: one of three is enough.
    let attempts = move || (0..3).map(|_| look()).find(|took| *took < Duration::from_secs(2));
    assert!(thread.spawn(attempts).unwrap().join().unwrap().is_some(), "it took too long");
}

const MEGABYTE: usize = 1 << 20;

#[test]
fn arrays_in_arrays_are_survived() {
    survives_in_time(format!("a = {}", "[".repeat(MEGABYTE)));
    survives_in_time(format!("a = {}{}", "[".repeat(MEGABYTE / 2), "]".repeat(MEGABYTE / 2)));
}

#[test]
fn tables_in_tables_are_survived() {
    survives_in_time(format!("a = {}", "{a=".repeat(MEGABYTE / 3)));
    let (open, close) = ("{a=".repeat(MEGABYTE / 4), "}".repeat(MEGABYTE / 4));
    survives_in_time(format!("a = {open}1{close}"));
}

#[test]
fn keys_of_many_dots_are_survived() {
    survives_in_time(format!("a{} = 1", ".a".repeat(MEGABYTE / 2)));
    survives_in_time(format!("[a{}]", ".a".repeat(MEGABYTE / 2)));
    survives_in_time(format!("[[a{}]]", ".a".repeat(MEGABYTE / 2)));
}

#[test]
fn many_small_mistakes_are_survived() {
    survives_in_time("x = 1\n".repeat(MEGABYTE / 6));
    survives_in_time("= = = \n".repeat(MEGABYTE / 8));
    survives_in_time("[[rule]]\n".repeat(MEGABYTE / 9));
}

#[test]
fn many_rules_are_read_in_time() {
    let rule = |number| {
        format!(
            "[[rule]]\nname='r{number}'\nmatch.path='/{number}/{{id}}/*'\n\
                                 by=['user|ip']\nlimits=['5/s','100/day']\n"
        )
    };
    survives_in_time((0..5_000).map(rule).collect());
}

#[test]
fn one_long_line_of_mistakes_is_survived() {
    survives_in_time(format!("rule = [{}]", "{name=5},".repeat(MEGABYTE / 10)));
}
