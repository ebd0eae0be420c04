//! Which rules a request matches: found by the index, and by a matcher too simple to be wrong.

use dashpot_rules::{Fact, Facts, RuleSet};
use proptest::prelude::*;
use proptest::sample::select;

/// What a rule asks for, as it is written.
#[derive(Clone, Debug)]
struct Wish {
    methods: Vec<&'static str>,
    paths: Vec<String>,
    hosts: Vec<&'static str>,
    headers: Vec<(&'static str, &'static str)>,
}

/// A request, as it comes.
#[derive(Clone, Debug)]
struct Request {
    method: &'static str,
    path: String,
    host: Option<&'static str>,
    headers: Vec<(&'static str, &'static str)>,
}

impl Wish {
    fn to_toml(&self, number: usize) -> String {
        let list = |items: &[&str]| {
            let quoted: Vec<_> = items.iter().map(|item| format!("'{item}'")).collect();
            format!("[{}]", quoted.join(", "))
        };
        let mut file = format!("[[rule]]\nname = 'r{number}'\nlimits = '5/s'\n");
        if !self.methods.is_empty() {
            file += &format!("match.method = {}\n", list(&self.methods));
        }
        if !self.paths.is_empty() {
            let paths: Vec<_> = self.paths.iter().map(String::as_str).collect();
            file += &format!("match.path = {}\n", list(&paths));
        }
        if !self.hosts.is_empty() {
            file += &format!("match.host = {}\n", list(&self.hosts));
        }
        for (name, value) in &self.headers {
            file += &format!("match.header.{name} = '{value}'\n");
        }
        file
    }

    /// By the words of the documentation, one after the other.
    fn is_met(&self, request: &Request) -> bool {
        let has = |wanted: &str| request.headers.iter().any(|(name, _)| *name == wanted);
        let preflight =
            request.method == "OPTIONS" && has("origin") && has("access-control-request-method");
        if preflight && !self.methods.contains(&"OPTIONS") {
            return false;
        }
        let method = self.methods.is_empty()
            || self.methods.contains(&request.method)
            || (request.method == "HEAD" && self.methods.contains(&"GET"));
        let path =
            self.paths.is_empty() || self.paths.iter().any(|p| path_matches(p, &request.path));
        let host = self.hosts.is_empty()
            || request.host.is_some_and(|host| self.hosts.iter().any(|h| host_matches(h, host)));
        let headers = self.headers.iter().all(|(name, wanted)| {
            { request.headers.iter() }
                .any(|(known, value)| known == name && (*wanted == "*" || wanted == value))
        });
        method && path && host && headers
    }
}

fn pieces(path: &str) -> Vec<&str> {
    path.split('/').filter(|piece| !piece.is_empty()).collect()
}

fn path_matches(pattern: &str, path: &str) -> bool {
    fn walk(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            (["*"], _) => true,
            ([], []) => true,
            ([first, pattern @ ..], [one, path @ ..]) => {
                let open = *first == "*" || first.starts_with('{');
                (open || first == one) && walk(pattern, path)
            }
            _ => false,
        }
    }
    walk(&pieces(pattern), &pieces(path))
}

fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (pattern.to_lowercase(), host.to_lowercase());
    match pattern.strip_prefix('*') {
        Some(domain) => host.ends_with(domain),
        None => host == pattern,
    }
}

fn methods() -> impl Strategy<Value = &'static str> {
    select(&["GET", "HEAD", "POST", "OPTIONS"][..])
}

fn hosts() -> impl Strategy<Value = &'static str> {
    select(&["a.example.com", "b.a.example.com", "A.Example.Com", "example.com", "other.org"][..])
}

fn host_patterns() -> impl Strategy<Value = &'static str> {
    select(&["a.example.com", "*.example.com", "*.a.example.com", "example.com", "OTHER.org"][..])
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    const NAMES: [&str; 4] = ["x-a", "x-b", "origin", "access-control-request-method"];
    let header = (select(&NAMES[..]), select(&["1", "2"][..]));
    let headers = prop::collection::btree_map(header.clone().prop_map(|h| h.0), header, 0..4);
    headers.prop_map(|map| map.into_iter().map(|(name, (_, value))| (name, value)).collect())
}

fn path(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(select(pieces), 0..4).prop_map(|pieces| format!("/{}", pieces.join("/")))
}

fn wish() -> impl Strategy<Value = Wish> {
    let wanted = (select(&["x-a", "x-b"][..]), select(&["1", "2", "*"][..]));
    let wanted = prop::collection::btree_map(wanted.clone().prop_map(|w| w.0), wanted, 0..3);
    (
        prop::collection::vec(methods(), 0..3),
        prop::collection::vec(path(&["a", "b", "login", "*", "{id}"]), 0..3),
        prop::collection::vec(host_patterns(), 0..2),
        wanted,
    )
        .prop_map(|(methods, paths, hosts, wanted)| Wish {
            methods,
            paths,
            hosts,
            headers: wanted.into_iter().map(|(name, (_, value))| (name, value)).collect(),
        })
}

fn request() -> impl Strategy<Value = Request> {
    (methods(), path(&["a", "b", "login", "c"]), prop::option::of(hosts()), headers())
        .prop_map(|(method, path, host, headers)| Request { method, path, host, headers })
}

fn facts(request: &Request) -> Facts {
    let mut facts =
        Facts::new().with(Fact::Method, request.method).with(Fact::Path, request.path.as_str());
    if let Some(host) = request.host {
        facts = facts.with(Fact::Host, host);
    }
    for (name, value) in &request.headers {
        facts = facts.with(Fact::Header((*name).to_owned()), *value);
    }
    facts
}

/// The rules by name.
fn found(set: &RuleSet, request: &Facts) -> Vec<String> {
    let explained = set.explain(request);
    let names: Vec<_> = explained.rules.into_iter().map(|rule| rule.name).collect();
    // One counter each, so the plan asks as many policies as there are rules.
    let plan = set.select(request).plan(request);
    let asked: Vec<_> = plan.checks().map(|check| check.policy.name().to_owned()).collect();
    assert_eq!(asked, names);
    names
}

/// A set with one rule for POST /login.
fn login() -> RuleSet {
    let file = "[[rule]]\nname = 'login'\nmatch = { path = '/login' }\nlimits = '5/s'";
    RuleSet::parse(file).unwrap()
}

fn at(path: &str) -> Facts {
    Facts::new().with(Fact::Path, path)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_rules_are_found_that_a_simple_matcher_finds(
        wishes in prop::collection::vec(wish(), 0..12),
        requests in prop::collection::vec(request(), 1..12),
    ) {
        let file: String = wishes.iter().zip(0..).map(|(wish, n)| wish.to_toml(n)).collect();
        let set = RuleSet::parse(&file).unwrap();
        for request in &requests {
            let expected: Vec<_> = { wishes.iter().zip(0..) }
                .filter(|(wish, _)| wish.is_met(request))
                .map(|(_, number)| format!("r{number}"))
                .collect();
            prop_assert_eq!(found(&set, &facts(request)), expected, "{:?}\n{}", request, file);
        }
    }

    #[test]
    fn a_path_written_otherwise_is_the_same_path(
        path in path(&["a", "login", "x.y", "~me", "a-b_c"]),
        ways in prop::collection::vec((0..6_u8, any::<prop::sample::Index>()), 0..6),
    ) {
        let set = RuleSet::parse(&format!(
            "[[rule]]\nname = 'r'\nmatch.path = '{path}'\nby = 'path'\nlimits = '5/s'"
        )).unwrap();
        let mut other = path.clone();
        for (way, index) in ways {
            let slashes: Vec<_> = other.match_indices('/').map(|(at, _)| at).collect();
            let slash = slashes[index.index(slashes.len())];
            match way {
                0 => other.insert(slash, '/'),
                1 => other.insert_str(slash, "/."),
                2 => other.insert_str(slash, "/zz/.."),
                3 => other.insert_str(slash, "/zz/%2E%2e"),
                4 => other.push('/'),
                _ => {
                    let at = index.index(other.len());
                    let byte = other.as_bytes()[at];
                    let before = other[..at].bytes().rev().take(2).any(|byte| byte == b'%');
                    if byte.is_ascii_alphanumeric() && !before {
                        other.replace_range(at..=at, &format!("%{byte:02x}"));
                    }
                }
            }
        }
        prop_assert_eq!(found(&set, &at(&other)), ["r"], "{}", other);
        // And counted as the same.
        let key = |path: &str| {
            let facts = at(path);
            let plan = set.select(&facts).plan(&facts);
            plan.checks().map(|check| check.key.as_bytes().to_vec()).collect::<Vec<_>>()
        };
        prop_assert_eq!(key(&other), key(&path), "{}", other);
    }
}

#[test]
fn there_is_no_way_around_a_path() {
    let set = login();
    for path in [
        "/login",
        "//login",
        "/login/",
        "/login//",
        "/%6cogin",
        "/%6Cogin",
        "/a/../login",
        "/./login",
        "/../login",
        "/a/b/../../login",
        "/%2e/login",
        "/a/%2E%2E/login",
        "///./login/.",
    ] {
        assert_eq!(found(&set, &at(path)), ["login"], "{path}");
    }
    for path in ["/", "/logi", "/loginn", "/login/x", "/a/login", "/login%2F", "/LOGIN", "login"] {
        assert_eq!(found(&set, &at(path)), [""; 0], "{path}");
    }
}

#[test]
fn there_is_no_way_around_a_path_with_marks() {
    let file = "[[rule]]\nname = 'r'\nmatch = { path = '/@me/a:b/c+d' }\nlimits = '5/s'";
    let set = RuleSet::parse(file).unwrap();
    assert_eq!(found(&set, &at("/@me/a:b/c+d")), ["r"]);
    assert_eq!(found(&set, &at("/%40me/a%3Ab/c%2Bd")), ["r"]);
}

#[test]
fn letters_that_need_escapes_are_found_by_their_escapes() {
    let file = "[[rule]]\nname = 'r'\nmatch = { path = '/größe/a b' }\nlimits = '5/s'";
    let set = RuleSet::parse(file).unwrap();
    assert_eq!(found(&set, &at("/gr%C3%B6%C3%9Fe/a%20b")), ["r"]);
}

#[test]
fn a_host_is_the_same_in_capitals_and_with_a_dot() {
    let file = "[[rule]]\nname = 'r'\nmatch = { host = 'Example.com' }\nlimits = '5/s'";
    let set = RuleSet::parse(file).unwrap();
    for host in ["example.com", "EXAMPLE.COM", "example.com."] {
        assert_eq!(found(&set, &Facts::new().with(Fact::Host, host)), ["r"], "{host}");
    }
    for host in ["example.org", "a.example.com", "", ".example.com", "example.com.."] {
        assert_eq!(found(&set, &Facts::new().with(Fact::Host, host)), [""; 0], "{host}");
    }
}

#[test]
fn a_host_may_be_written_with_a_dot() {
    let file = "[[rule]]\nname = 'r'\nmatch = { host = 'example.com.' }\nlimits = '5/s'";
    let set = RuleSet::parse(file).unwrap();
    assert_eq!(found(&set, &Facts::new().with(Fact::Host, "example.com")), ["r"]);
}

#[test]
fn head_is_covered_by_get_and_not_the_other_way() {
    let set = RuleSet::parse(
        "[[rule]]\nname = 'get'\nmatch.method = 'get'\nlimits = '5/s'\n\
         [[rule]]\nname = 'head'\nmatch.method = 'HEAD'\nlimits = '5/s'",
    )
    .unwrap();
    let method = |method: &str| found(&set, &Facts::new().with(Fact::Method, method));
    assert_eq!(method("GET"), ["get"]);
    assert_eq!(method("HEAD"), ["get", "head"]);
    assert_eq!(method("POST"), [""; 0]);
}

#[test]
fn a_browser_may_ask_before_it_sends_unless_a_rule_says_so() {
    let set = RuleSet::parse(
        "[[rule]]\nname = 'all'\nlimits = '5/s'\n\
         [[rule]]\nname = 'asks'\nmatch.method = 'OPTIONS'\nlimits = '5/s'",
    )
    .unwrap();
    let header = |name: &str| Fact::Header(name.to_owned());
    let options = Facts::new().with(Fact::Method, "OPTIONS");
    let preflight = options
        .clone()
        .with(header("origin"), "https://example.com")
        .with(header("access-control-request-method"), "POST");
    assert_eq!(found(&set, &preflight), ["asks"]);
    // Neither part of it alone is a preflight.
    assert_eq!(found(&set, &options), ["all", "asks"]);
    assert_eq!(found(&set, &options.with(header("origin"), "null")), ["all", "asks"]);
    assert_eq!(found(&set, &preflight.with(Fact::Method, "POST")), ["all"]);
}

#[test]
fn facts_of_the_application_are_matched() {
    let set = RuleSet::parse(
        "[[rule]]\nname = 'acme'\nmatch.fact.tenant = 'acme'\nlimits = '5/s'\n\
         [[rule]]\nname = 'any'\nmatch.fact.tenant = '*'\nlimits = '5/s'",
    )
    .unwrap();
    assert_eq!(found(&set, &Facts::new().set("tenant", "acme")), ["acme", "any"]);
    assert_eq!(found(&set, &Facts::new().set("tenant", "other")), ["any"]);
    assert_eq!(found(&set, &Facts::new()), [""; 0]);
}

#[test]
fn a_path_that_is_no_text_matches_rules_for_all_paths() {
    let file = "[[rule]]\nname = 'all'\nlimits = '5/s'\n\
                [[rule]]\nname = 'any'\nmatch.path = '/*'\nlimits = '5/s'";
    let set = RuleSet::parse(file).unwrap();
    assert_eq!(found(&set, &Facts::new()), ["all"]);
    assert_eq!(found(&set, &at("*")), ["all"]);
    assert_eq!(found(&set, &at("/%ff")), ["all", "any"]);
}
