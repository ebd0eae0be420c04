//! State that outlives the process: written to a file, and read back.
//!
//! The file holds every key's state by its mark, the seed by which marks are made, and the
//! definitions under which states are kept, so that a later process goes on where this one was. It
//! is written beside its place and then moved there, so what stands there is always whole; and it is
//! read to the end and checked before anything of it is believed.

mod error;
mod format;
mod keeper;
mod read;
mod write;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{MemoryStore, MemoryStoreBuilder};
pub use error::StateError;
pub use keeper::StateKeeper;

impl MemoryStore {
    /// Writes what it remembers to a file, and says how many keys that are. Checks go on meanwhile.
    ///
    /// The file is written beside its place, brought to the disk, and then moved there: whatever
    /// happens, what stands there is whole, and old or new. Only the owner can read it. Permits in
    /// flight are not in it, because those who hold them end with the process.
    ///
    /// # Errors
    /// If it cannot be written, or if what stands in its place is no state of this program, which is
    /// then left alone.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<u64, StateError> {
        let path = path.as_ref();
        let _turn = self.saving.lock();
        read::refuse_others(path)?;
        clear_away(path, OLD);
        let beside = beside(path);
        let written = self.save_beside(&beside);
        let moved = written.and_then(|keys| {
            fs::rename(&beside, path).and_then(|()| sync_directory(path))?;
            Ok(keys)
        });
        moved.map_err(|error| {
            // What could not be finished is of no use, and may be what fills the disk.
            let _ = fs::remove_file(&beside);
            StateError::write(path, error)
        })
    }

    fn save_beside(&self, path: &Path) -> io::Result<u64> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = BufWriter::with_capacity(1 << 18, options.open(path)?);
        let keys = write::store(self, &mut out)?;
        out.flush()?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(keys)
    }
}

impl MemoryStoreBuilder {
    /// The store, with what was [saved](MemoryStore::save) in this file; empty if there is none.
    ///
    /// Limits may have changed meanwhile: what was used stays used, as it does when they change
    /// while the process runs.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, is something else, or was written by a later version.
    /// It is left as it is, and nothing of it is used.
    ///
    /// ```
    /// use dashpot::{MemoryStore, StateKeeper};
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// # let directory = std::env::temp_dir().join(format!("dashpot-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// # let path = directory.join("dashpot.state");
    /// let store = Arc::new(MemoryStore::builder().build_from(&path)?);
    /// let keeper = StateKeeper::start(store.clone(), &path, Duration::from_secs(10), |error| {
    ///     eprintln!("{error}");
    /// })?;
    /// // … and when the service ends:
    /// keeper.close()?;
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_from(self, path: impl AsRef<Path>) -> Result<MemoryStore, StateError> {
        let path = path.as_ref();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(self.build()),
            Err(error) => return Err(StateError::read(path, error)),
        };
        // Once to see whether all of it is right, and only then once more to believe it.
        let mut input = BufReader::with_capacity(1 << 18, file);
        read::verify(&mut input).map_err(|fault| fault.at(path))?;
        io::Seek::rewind(&mut input).map_err(|error| StateError::read(path, error))?;
        read::store(&mut input, self).map_err(|fault| fault.at(path))
    }
}

/// Where a file is written before it is moved to its place. Each time another: one process may be
/// about to end while the next one begins.
fn beside(path: &Path) -> PathBuf {
    static SAVES: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    let save = SAVES.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{save}{UNFINISHED}", std::process::id()));
    path.with_file_name(name)
}

/// The end of the names of files that are being written.
const UNFINISHED: &str = ".new";

/// How old such a file is when nobody can be writing it any more.
const OLD: Duration = Duration::from_secs(600);

/// Clears away what those left who were killed while they were writing, if it is older than this.
fn clear_away(path: &Path, old: Duration) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str))
    else {
        return;
    };
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    // Whatever cannot be looked at or removed is in nobody's way.
    for entry in fs::read_dir(here).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let is_ours = found.to_str().is_some_and(|found| {
            found
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(UNFINISHED))
        });
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= old));
        if is_ours && is_old {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Brings the move itself to the disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(parent.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
