//! A directory for what a proxy's rules and flags name, and `dashpot` run in it.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{TemporaryDirectory, start};

/// A directory with what its rules and flags name.
pub(crate) struct Home(TemporaryDirectory);

impl Home {
    pub(crate) fn new() -> Self {
        Self(TemporaryDirectory::new())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Starts `dashpot` here with what the environment of the test does not say.
    pub(crate) fn spawn(&self, arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Child {
        start(env!("CARGO_BIN_EXE_dashpot"), |command| {
            for (name, _) in env::vars_os() {
                if name.to_string_lossy().starts_with("DASHPOT_") {
                    command.env_remove(name);
                }
            }
            command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
            command.stdout(Stdio::piped());
            command.stderr(File::create(self.file("stderr")).unwrap());
            prepare(command);
        })
    }

    /// Runs a command of `dashpot` that ends by itself.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, |_| {})
    }

    pub(crate) fn run_with(
        &self,
        arguments: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Output {
        let mut child = self.spawn(arguments, prepare);
        let mut told = child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            told.read_to_end(&mut text).map(|_| text)
        });
        let ended = (0..2000).find_map(|_| {
            thread::sleep(Duration::from_millis(10));
            child.try_wait().unwrap()
        });
        let Some(status) = ended else {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it runs: dashpot {arguments:?}");
        };
        let stdout = reader.join().unwrap().unwrap();
        Output { status, stdout, stderr: fs::read(self.file("stderr")).unwrap() }
    }

    /// What is said when it cannot start, and that it cannot.
    #[track_caller]
    pub(crate) fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(&[&["proxy"], arguments].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        told
    }
}
