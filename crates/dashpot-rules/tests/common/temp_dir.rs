//! A directory that is gone when the test is over.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("dashpot-rules-{}-{number}", process::id()));
        // What an earlier process of the same number left behind, if it was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and says where it is. Nobody sees half of it, however long a busy machine takes.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let (file, whole) = (self.0.join(name), self.0.with_extension("part"));
        fs::write(&whole, text).unwrap();
        fs::rename(whole, &file).unwrap();
        file
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
