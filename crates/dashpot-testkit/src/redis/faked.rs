use std::fs::{self, File};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use super::RedisServer;
use crate::process::TemporaryDirectory;

/// A server whose wall clock is set by the test, and stands still in between.
///
/// `TIME`, also in scripts, and the expiry of keys go by it. What Redis does every so often goes
/// on by real time. It is a library that is compiled with `cc` and loaded into the server.
#[derive(Debug)]
pub struct FakedRedis {
    // First: the process is gone when its clock is.
    server: RedisServer,
    clock: File,
    _directory: TemporaryDirectory,
}

impl FakedRedis {
    /// Starts one, at this time in nanoseconds since the epoch.
    ///
    /// # Panics
    /// As [`RedisServer::start`] does, or if there is no C compiler.
    #[must_use]
    pub fn start(nanos: u64) -> Self {
        Self::with(nanos, &[])
    }

    /// Starts one with more settings, such as `["--maxmemory", "2mb"]`.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[must_use]
    pub fn with(nanos: u64, settings: &[&str]) -> Self {
        let directory = TemporaryDirectory::new();
        let library = compiled(directory.path());
        let path = directory.path().join("clock");
        let clock = File::create(&path).expect("a file for the clock");
        write(&clock, nanos);

        let variables = [("LD_PRELOAD", library), ("DASHPOT_CLOCK", path.display().to_string())];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        // The allocator's thread would sleep until a time on the wall clock, so not at all or for
        // ever.
        let settings = [&["--jemalloc-bg-thread", "no"], settings].concat();
        let server = RedisServer::with_variables(&settings, &variables);
        Self { server, clock, _directory: directory }
    }

    /// Sets the clock, forward or backward, to nanoseconds since the epoch. From then on the
    /// server tells exactly this time (in microseconds), until it is set again.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn set_time(&self, nanos: u64) {
        write(&self.clock, nanos);
    }
}

impl Deref for FakedRedis {
    type Target = RedisServer;

    fn deref(&self) -> &RedisServer {
        &self.server
    }
}

fn write(clock: &File, nanos: u64) {
    let twice = [nanos.to_ne_bytes(), nanos.to_ne_bytes()].concat();
    clock.write_all_at(&twice, 0).expect("the file can be written");
}

fn compiled(directory: &Path) -> String {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, include_str!("clock.c")).expect("a file for the source");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    let output = compiler.output().expect("there is a C compiler, cc, as Rust needs one to link");
    assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
    library.display().to_string()
}
