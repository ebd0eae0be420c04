//! Where `scripts/gateways` puts what it installs.

use std::env;
use std::path::{Path, PathBuf};

/// A program out of the virtualenv.
pub(crate) fn installed(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = env::var_os("DASHPOT_GATEWAYS").unwrap_or_else(|| "target/gateways".into());
    found(name, [root.join(home).join("bin").join(name)])
}

/// A test that is skipped proves nothing, so it is not.
fn found(name: &str, candidates: impl IntoIterator<Item = PathBuf>) -> String {
    let there = candidates.into_iter().find(|candidate| candidate.is_file());
    let there = there.unwrap_or_else(|| panic!("{name} is not there: run scripts/gateways"));
    there.into_os_string().into_string().expect("a path that is text")
}
