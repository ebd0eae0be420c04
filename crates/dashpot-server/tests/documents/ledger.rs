//! How each fenced block of the README and the book is covered.
//!
//! A row is about all blocks of a kind on a page, or there are as many rows as blocks, in their order. Add a row when a
//! page gets a block of a new kind.

use std::collections::BTreeSet;

use crate::book::{Block, blocks, files_below, pages, read, root};
use crate::shell::RUN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    /// Rust: compiled, and run unless it says otherwise, since a crate has the page among its documentation.
    Doctest,
    /// A rule file: rule_files.rs has `dashpot rules check` read it.
    Rules,
    /// Lines for a manifest: rule_files.rs.
    Manifest,
    /// Commands: shell/pages.rs runs them.
    Shell,
    /// What commands print: shell/pages.rs compares it with what the block before it prints.
    Printed,
    /// The test that runs or compares it.
    Elsewhere(&'static str),
    /// Nothing that could be run, and why.
    Illustration(&'static str),
    /// What no machine of tests can run, and what is seen to instead.
    Cannot(&'static str),
}

use Covered::{Cannot, Doctest, Elsewhere, Illustration, Manifest, Printed, Rules, Shell};

const SHOWN: &str = "crates/dashpot-server/tests/documents/shown.rs";
const EDGE: &str = "crates/dashpot-server/tests/documents/edge.rs";
const EXPRESS: &str = "crates/dashpot-server/tests/documents/express.rs";
const KEY_FILE: &str = "crates/dashpot-server/tests/documents/rule_files.rs";
const BY_GATEWAYS: &str = "crates/dashpot-server/tests/gateways/tried.rs";
const SNIPPETS: &str = "crates/dashpot-server/tests/throttle/snippets.rs";
const PACKAGING: &str = "crates/dashpot-server/tests/packaging.rs";
const ENVOY: &str = "crates/dashpot-server/tests/gateways/rate_limit/plan.rs";
const NO_COMPILER: Covered =
    Cannot("no compiler of it here; shown.rs sees that it sends the words of the other languages");

const LEDGER: &[(&str, &str, Covered)] = &[
    ("README.md", "sh", Shell),
    ("README.md", "text", Printed),
    ("README.md", "rust", Doctest),
    ("docs/accuracy.md", "toml", Rules),
    ("docs/api.md", "sh", Shell),
    ("docs/api.md", "json", Elsewhere(SHOWN)),
    ("docs/choosing.md", "sh", Shell),
    ("docs/choosing-keys.md", "sh", Shell),
    ("docs/client.md", "toml", Manifest),
    ("docs/client.md", "rust", Doctest),
    ("docs/dashboard.md", "sh", Shell),
    ("docs/deploying.md", "sh", Shell),
    ("docs/deploying.md", "ini", Elsewhere(PACKAGING)),
    ("docs/deploying.md", "yaml", Elsewhere(PACKAGING)),
    ("docs/edge.md", "js", Elsewhere(EDGE)),
    ("docs/edge.md", "python", Elsewhere(EDGE)),
    ("docs/edge.md", "sh", Shell),
    ("docs/envoy.md", "sh", Shell),
    ("docs/envoy.md", "yaml", Elsewhere(ENVOY)),
    (
        "docs/envoy.md",
        "text",
        Elsewhere("crates/dashpot-server/tests/gateways/rate_limit/shown.rs"),
    ),
    ("docs/envoy.md", "toml", Rules),
    ("docs/from-express-rate-limit.md", "toml", Rules),
    ("docs/from-express-rate-limit.md", "js", Elsewhere(EXPRESS)),
    ("docs/from-governor.md", "rust", Doctest),
    (
        "docs/from-nginx.md",
        "nginx",
        Elsewhere("crates/dashpot-server/tests/proxy_limits/beside_nginx.rs"),
    ),
    ("docs/from-nginx.md", "toml", Rules),
    ("docs/from-tower-governor.md", "rust", Doctest),
    ("docs/from-tower-governor.md", "toml", Rules),
    ("docs/gateways/README.md", "text", Illustration("a drawing of who asks whom")),
    (
        "docs/gateways/caddy.md",
        "caddyfile",
        Elsewhere("crates/dashpot-server/tests/gateways/caddy.rs"),
    ),
    ("docs/gateways/caddy.md", "toml", Rules),
    ("docs/gateways/caddy.md", "sh", Shell),
    ("docs/gateways/caddy.md", "text", Elsewhere(BY_GATEWAYS)),
    ("docs/gateways/envoy.md", "yaml", Elsewhere("crates/dashpot-server/tests/gateways/envoy.rs")),
    ("docs/gateways/envoy.md", "toml", Rules),
    ("docs/gateways/envoy.md", "sh", Shell),
    ("docs/gateways/envoy.md", "text", Elsewhere(BY_GATEWAYS)),
    ("docs/gateways/nginx.md", "nginx", Elsewhere("crates/dashpot-server/tests/gateways/nginx.rs")),
    ("docs/gateways/nginx.md", "toml", Rules),
    ("docs/gateways/nginx.md", "sh", Shell),
    ("docs/gateways/nginx.md", "text", Elsewhere(BY_GATEWAYS)),
    (
        "docs/gateways/traefik.md",
        "yaml",
        Elsewhere("crates/dashpot-server/tests/gateways/traefik.rs"),
    ),
    ("docs/gateways/traefik.md", "toml", Rules),
    ("docs/gateways/traefik.md", "sh", Shell),
    ("docs/gateways/traefik.md", "text", Elsewhere(BY_GATEWAYS)),
    ("docs/headers.md", "text", Elsewhere(SHOWN)),
    ("docs/headers.md", "json", Elsewhere(SHOWN)),
    ("docs/library.md", "sh", Shell),
    ("docs/library.md", "text", Printed),
    ("docs/library.md", "rust", Doctest),
    ("docs/library.md", "toml", Manifest),
    ("docs/middleware.md", "rust", Doctest),
    ("docs/middleware.md", "toml", Manifest),
    ("docs/middleware.md", "toml", Rules),
    ("docs/middleware.md", "sh", Shell),
    ("docs/operations.md", "sh", Shell),
    ("docs/operations.md", "text", Elsewhere(SHOWN)),
    ("docs/overload.md", "toml", Rules),
    ("docs/overload.md", "sh", Shell),
    ("docs/overload.md", "rust", Doctest),
    ("docs/performance.md", "sh", Shell),
    ("docs/proxy.md", "sh", Shell),
    ("docs/proxy.md", "text", Printed),
    ("docs/proxy.md", "text", Elsewhere(SHOWN)),
    ("docs/proxy.md", "toml", Rules),
    ("docs/redis.md", "rust", Doctest),
    ("docs/redis.md", "sh", Shell),
    ("docs/redis.md", "text", Elsewhere("crates/dashpot-redis/tests/found/servers.rs")),
    ("docs/resp.md", "sh", Shell),
    ("docs/resp.md", "text", Elsewhere("crates/dashpot-server/tests/throttle/cli.rs")),
    ("docs/resp.md", "text", Illustration("the names of the arguments")),
    ("docs/resp.md", "python", Elsewhere(SNIPPETS)),
    ("docs/resp.md", "js", Elsewhere(SNIPPETS)),
    ("docs/resp.md", "go", NO_COMPILER),
    ("docs/resp.md", "ruby", NO_COMPILER),
    ("docs/resp.md", "php", NO_COMPILER),
    ("docs/resp.md", "java", NO_COMPILER),
    ("docs/rules.md", "toml", Rules),
    ("docs/rules.md", "toml", Elsewhere(KEY_FILE)),
    ("docs/rules.md", "toml", Rules),
    ("docs/rules.md", "sh", Shell),
    ("docs/simulate.md", "sh", Shell),
    ("docs/simulate.md", "text", Printed),
];

/// How the nth of so many blocks of a kind is covered.
fn row(page: &str, kind: &str, nth: usize, count: usize) -> Option<Covered> {
    let rows = LEDGER.iter().filter(|row| row.0 == page && row.1 == kind).map(|row| row.2);
    let rows: Vec<Covered> = rows.collect();
    match rows.len() {
        1 => Some(rows[0]),
        several if several == count => Some(rows[nth]),
        _ => None,
    }
}

/// Every block, and how it is covered.
fn entries() -> Vec<(String, Block, Option<Covered>)> {
    let mut found = Vec::new();
    for page in pages() {
        let all = blocks(&read(&page));
        for (at, block) in all.iter().enumerate() {
            let same = |other: &&Block| other.kind == block.kind;
            let nth = all[..at].iter().filter(same).count();
            let covered = row(&page, &block.kind, nth, all.iter().filter(same).count());
            found.push((page.clone(), block.clone(), covered));
        }
    }
    found
}

/// The blocks that are covered so.
pub(crate) fn covered_by(is_so: impl Fn(&Covered) -> bool) -> Vec<(String, Block)> {
    let is_so = |covered: &Option<Covered>| covered.as_ref().is_some_and(&is_so);
    let entries = entries().into_iter().filter(|(_, _, covered)| is_so(covered));
    entries.map(|(page, block, _)| (page, block)).collect()
}

#[test]
fn every_block_is_covered() {
    let mut missing = BTreeSet::new();
    for (page, block, covered) in entries() {
        if covered.is_none() {
            missing.insert(format!("{page}: ```{}", block.kind));
        }
    }
    assert!(missing.is_empty(), "not in the ledger, or not as often:\n{missing:#?}");
}

#[test]
fn every_row_is_about_a_block() {
    let there: BTreeSet<_> =
        entries().into_iter().map(|(page, block, _)| (page, block.kind)).collect();
    for (page, kind, _) in LEDGER {
        assert!(there.contains(&((*page).to_owned(), (*kind).to_owned())), "{page}: {kind}");
    }
}

/// A page is among some crate's documentation, and nothing in it is left out.
#[test]
fn what_is_said_to_be_a_doctest_is() {
    let sources = files_below("crates").into_iter();
    let sources = sources.filter(|file| file.ends_with(".rs") && file.contains("/src/"));
    let included: Vec<String> = sources
        .map(|file| read(&file))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("#[doc = include_str!("))
        .collect();
    for (page, block) in covered_by(|covered| *covered == Doctest) {
        assert!(included.iter().any(|line| line.contains(&format!("/{page}\""))), "{page}");
        assert!(!block.said.contains("ignore"), "{page}: {}", block.said);
    }
}

#[test]
fn whose_commands_are_said_to_be_run_has_a_test() {
    let said = covered_by(|covered| *covered == Shell);
    let said: BTreeSet<&str> = said.iter().map(|(page, _)| page.as_str()).collect();
    assert_eq!(said, RUN.iter().copied().collect());
    // And what they print comes right after them, or nobody would compare it.
    for (page, block) in covered_by(|covered| *covered == Printed) {
        assert!(said.contains(&*page) && block.follows, "{page}:\n{}", block.text);
    }
}

#[test]
fn tests_that_are_named_are_there_and_about_it() {
    for (page, _, covered) in LEDGER {
        match covered {
            Elsewhere(test) => {
                assert!(root().join(test).exists(), "{test}");
                let name = page.strip_prefix("docs/").unwrap_or(page);
                assert!(read(test).contains(name), "{test} does not mention {name}");
            }
            Illustration(why) | Cannot(why) => assert!(!why.is_empty(), "{page}"),
            _ => {}
        }
    }
}
