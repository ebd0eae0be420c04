//! Where `scripts/gateways` puts what it installs.

use std::env;
use std::path::{Path, PathBuf};

/// A program out of the virtualenv.
pub(crate) fn installed(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = env::var_os("DASHPOT_GATEWAYS").unwrap_or_else(|| "target/gateways".into());
    found(name, [root.join(home).join("bin").join(name)])
}

/// A program of the system's, also where only root looks for it.
#[allow(dead_code, reason = "not every test needs one")]
pub(crate) fn of_the_system(name: &str) -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    found(name, directories.map(|directory| directory.join(name)))
}

/// A test that is skipped proves nothing, so it is not.
fn found(name: &str, candidates: impl IntoIterator<Item = PathBuf>) -> String {
    let there = candidates.into_iter().find(|candidate| candidate.is_file());
    let there = there.unwrap_or_else(|| panic!("{name} is not there: run scripts/gateways"));
    there.into_os_string().into_string().expect("a path that is text")
}
