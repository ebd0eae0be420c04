//! The disk is full: what cannot be saved is told, and the last good file stays as it is.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::instances::{UNSAVED, kill, terminate};
use super::{await_well, tell};
use crate::fleet::Door;
use crate::recovery::SAVED;
use crate::soak::Soak;

/// The longest that a file gets on a full disk: longer than its log, shorter than what it has to remember.
const ROOM: u64 = 64 * 1024;
/// How it is told that saving, which is tried every second, came to nothing.
const UNABLE: &str = "counts cannot be saved";

/// Nobody who asks is to notice. What is counted meanwhile is lost if it ends before there is room again.
pub(super) fn fill(soak: &Soak, random: &mut fastrand::Rng) {
    let file = soak.fleet.state();
    if Version::of(&file).is_none_or(|version| version.bytes < 2 * ROOM) {
        tell(soak, "the disk has room for the little that is counted yet");
        return;
    }
    let saved = soak.now() - UNSAVED;
    tell(soak, "the disk is full");
    let instance = &soak.fleet.member(Door::Alone).instance;
    instance.disk_full_after(Some(ROOM));
    let await_told = || {
        let said = instance.how_often_said(UNABLE);
        await_well(soak, "a full disk is told", || instance.how_often_said(UNABLE) > said);
    };
    // What was being saved when the disk became full is saved by then.
    await_told();
    let before = Version::of(&file);
    soak.sleep(random.f64() * 3.0);
    await_told();
    let is_as_before = || Version::of(&file) == before;
    if !is_as_before() {
        soak.wrong("counts were saved on a full disk");
    }
    match random.u8(..3) {
        0 => kill(soak, random, Door::Alone, saved),
        1 => terminate(soak, random, Door::Alone, Some(saved)),
        _ => {
            instance.disk_full_after(None);
            tell(soak, "the disk has room");
            // Or the next kill would lose more than it may.
            let took = await_well(soak, "counts are saved again", || !is_as_before());
            soak.recovered("disk full", took, SAVED);
        }
    }
}

/// What tells one file from the one that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    bytes: u64,
    saved: SystemTime,
}

impl Version {
    fn of(file: &Path) -> Option<Self> {
        let told = fs::metadata(file).ok()?;
        Some(Self { bytes: told.len(), saved: told.modified().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use dashpot_testkit::process::TemporaryDirectory;

    use super::*;

    #[test]
    fn a_file_that_is_written_again_is_another_one() {
        let directory = TemporaryDirectory::new();
        let file = directory.path().join("state");
        assert_eq!(Version::of(&file), None);
        fs::write(&file, "counts").unwrap();
        let first = Version::of(&file);
        assert!(first.is_some() && first == Version::of(&file));
        thread::sleep(Duration::from_millis(20));
        fs::write(&file, "counts").unwrap();
        assert_ne!(Version::of(&file), first);
    }
}
