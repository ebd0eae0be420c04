//! Pictures of the documentation, drawn by the tests that are about them.

use std::fs;
use std::path::Path;

pub use dashpot_simulate::plot::*;

/// Sees that a file below `docs/` is this picture. `UPDATE_PLOTS=1` draws it anew.
///
/// # Panics
/// If it is another.
pub fn is_drawn_in(drawn: &str, file: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    if std::env::var("UPDATE_PLOTS").is_ok_and(|update| update == "1") {
        fs::create_dir_all(file.parent().expect("it is in a folder")).unwrap();
        fs::write(&file, drawn).unwrap();
    }
    let held = fs::read_to_string(&file).unwrap_or_default();
    assert!(held == drawn, "{} is not what is drawn: UPDATE_PLOTS=1 draws it", file.display());
}
