//! Rule files that are shown can be used as they are; so can lines for a manifest.

use std::fs;
use std::process::{Command, Output};

use dashpot_testkit::process::TemporaryDirectory;

use crate::book::{blocks_of, read};
use crate::ledger::{Covered, covered_by};

fn dashpot(directory: &TemporaryDirectory, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(arguments).env_clear().current_dir(directory.path()).output().unwrap()
}

#[test]
fn every_rule_file_is_fine() {
    let files = covered_by(|covered| *covered == Covered::Rules);
    assert!(files.len() >= 5, "{files:?}");
    for (page, block) in files {
        let directory = TemporaryDirectory::new();
        fs::write(directory.path().join("dashpot.toml"), &block.text).unwrap();
        let output = dashpot(&directory, &["rules", "check", "dashpot.toml"]);
        assert_eq!(output.status.code(), Some(0), "{page}: {output:?}\n{}", block.text);
    }
}

/// The key file of docs/rules.md, whose hash is that of `test`.
#[test]
fn the_key_file_knows_its_key() {
    let shown = blocks_of("docs/rules.md", "toml");
    let keys = shown.iter().find(|block| block.starts_with("9f86")).unwrap();
    let directory = TemporaryDirectory::new();
    fs::write(directory.path().join("keys.toml"), keys).unwrap();
    let rules = "[identity]\napi_key = 'header:x-api-key'\napi_keys_file = 'keys.toml'\ndefault_tier = 'free'\n\
                 [[rule]]\nname = 'a'\nby = ['user']\ntiers.free = ['1/h']\ntiers.pro = ['1/s']\n";
    fs::write(directory.path().join("dashpot.toml"), rules).unwrap();
    let output = dashpot(&directory, &["rules", "explain", "GET", "/", "-H", "x-api-key: test"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(told.contains("fact user = acme") && told.contains("fact tier = pro"), "{told}");
}

/// Ours are where this workspace has them, with features that there are; others' are those it is built and tested with.
#[test]
fn every_dependency_can_be_had() {
    let workspace = read("Cargo.toml");
    let of_workspace = |name: &str| {
        let line = workspace.lines().find(|line| line.starts_with(&format!("{name} = ")));
        line.unwrap_or_else(|| panic!("{name} in Cargo.toml")).to_owned()
    };
    for (page, block) in covered_by(|covered| *covered == Covered::Manifest) {
        let mut tried = 0;
        for line in block.text.lines().filter(|line| line.contains(" = ")) {
            let (name, rest) = line.split_once(" = ").unwrap();
            let mut quoted = rest.split('"').skip(1).step_by(2);
            let wanted = quoted.next().unwrap();
            if name.starts_with("dashpot") {
                assert_eq!(wanted, format!("../dashpot/crates/{name}"), "{page}: {line}");
                let manifest = read(&format!("crates/{name}/Cargo.toml"));
                for feature in quoted {
                    let is_it = |line: &str| line.starts_with(&format!("{feature} = ["));
                    assert!(manifest.lines().any(is_it), "{page}: {line}");
                }
            } else {
                let known = of_workspace(name);
                assert!(known.contains(&format!("\"{wanted}")), "{page}: {line}: {known}");
            }
            tried += 1;
        }
        assert!(tried > 0, "{page}: {}", block.text);
    }
}

#[test]
fn every_feature_is_listed() {
    let page = read("docs/middleware.md");
    for name in ["dashpot-http", "dashpot-redis", "dashpot-client"] {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let features =
            manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
        let features = features.lines().filter_map(|line| Some(line.split_once(" = [")?.0));
        for feature in features.filter(|feature| *feature != "default") {
            assert!(page.contains(&format!("| `{name}` | `{feature}`")), "{name}: {feature}");
        }
    }
}
