#![no_main]

//! The file of API keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dashpot_rules::RuleSet;
use libfuzzer_sys::fuzz_target;

/// In memory where there is such a place: it is written for each input.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    place.join(format!("dashpot-fuzz-{}.keys", std::process::id()))
});

/// Keys, where only their hashes belong, and the hash of the first.
const KEY: &str = "hunter2";
const HASH: &str = "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7";

fuzz_target!(|data: &[u8]| {
    fs::write(&*FILE, data).expect("there is room");
    let rules = format!(
        "[identity]\ntrusted_proxies = ['10.0.0.0/8']\napi_key = 'header:x-api-key'\napi_keys_file = '{}'\n",
        FILE.display()
    );
    let read = RuleSet::parse(&rules);
    let again = RuleSet::parse(&rules);
    let _ = fs::remove_file(&*FILE);
    let text = String::from_utf8_lossy(data).to_ascii_lowercase();
    match read {
        Ok(set) => {
            let keys = &set.identity().keys;
            assert_eq!(*keys, again.expect("it was right a moment ago").identity().keys);
            // Each is written out: 64 digits.
            assert!(keys.len() <= text.len() / 64);
            if keys.holder(KEY.as_bytes()).is_some() {
                assert!(text.contains(HASH) || text.contains('\\'), "nobody listed it");
            }
            assert_eq!(keys.holder(HASH.as_bytes()), None, "a hash is no key");
        }
        Err(errors) => {
            let problems = errors.problems();
            assert!((1..=100).contains(&problems.len()) && again.is_err());
            for problem in problems {
                let told = problem.to_string();
                assert!(!told.contains(KEY), "{told}");
                assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
            }
        }
    }
});
