//! What can be wrong with a file of state.

use std::io;
use std::path::{Path, PathBuf};

/// State could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// It could not be written; what stood there before stands there still.
    #[error("cannot write {}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is no state of dashpot; it was left alone: name another file", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// It was written by a later version.
    #[error(
        "{} was written by a later version of dashpot (format {version}); it was left alone: use \
         that version, or name another file", path.display()
    )]
    Newer {
        /// Where.
        path: PathBuf,
        /// The version of its format.
        version: u32,
    },
    /// It is not as it was written.
    #[error(
        "{} is damaged at byte {offset} ({what}); it was left alone: move it away to start empty",
        path.display()
    )]
    Damaged {
        /// Where.
        path: PathBuf,
        /// How far it could be read.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

impl StateError {
    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}

/// A [`StateError`] before it is known in which file.
#[derive(Debug)]
pub(super) enum Fault {
    Read(io::Error),
    Foreign,
    Newer(u32),
    Damaged(u64, &'static str),
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> StateError {
        let path = path.to_owned();
        match self {
            Self::Read(source) => StateError::Read { path, source },
            Self::Foreign => StateError::Foreign { path },
            Self::Newer(version) => StateError::Newer { path, version },
            Self::Damaged(offset, what) => StateError::Damaged { path, offset, what },
        }
    }
}
