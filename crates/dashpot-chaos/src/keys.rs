//! Whether the one in memory keeps to its bound on keys, and whether it ever came up against it.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::fleet::Door;
use crate::rules::MAX_KEYS;
use crate::soak::{Soak, lock};

/// What its gauges told at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Most {
    keys: f64,
    /// Times that a key found no room.
    overflowed: f64,
}

impl Most {
    fn note(&mut self, keys: f64, overflowed: f64) {
        self.keys = self.keys.max(keys);
        self.overflowed = self.overflowed.max(overflowed);
    }

    /// What is wrong with it, if anything is. A bound that nobody came up against was not put to the test.
    pub(crate) fn judge(self) -> Result<(), String> {
        let Self { keys, overflowed } = self;
        if keys > MAX_KEYS {
            return Err(format!("{keys} keys in memory, {MAX_KEYS} may be"));
        }
        if keys < 0.9 * MAX_KEYS || overflowed == 0.0 {
            return Err(format!(
                "{keys} keys in memory, and {overflowed} found no room: nothing is known of the bound of {MAX_KEYS}"
            ));
        }
        Ok(())
    }
}

impl std::fmt::Display for Most {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys of {MAX_KEYS}, {} found no room", self.keys, self.overflowed)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Arc<Mutex<Most>>);

impl Keys {
    /// Asks by a thread of its own: who stands still makes it wait.
    pub(crate) fn watch(soak: &Arc<Soak>) -> Self {
        let keys = Self::default();
        let (noted, soak) = (keys.clone(), soak.clone());
        thread::spawn(move || {
            while !soak.is_over() {
                let instance = &soak.fleet.member(Door::Alone).instance;
                let told =
                    instance.metrics(["dashpot_memory_keys", "dashpot_memory_overflowed_total"]);
                if let Some([keys, overflowed]) = told {
                    lock(&noted.0).note(keys, overflowed);
                }
                thread::sleep(Duration::from_millis(500));
            }
        });
        keys
    }

    pub(crate) fn most(&self) -> Most {
        *lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_and_was_reached() {
        let judged = |keys, overflowed| {
            let mut most = Most::default();
            most.note(keys, overflowed);
            most.note(17.0, 0.0);
            most.judge()
        };
        judged(MAX_KEYS, 812.0).unwrap();
        let told = judged(MAX_KEYS + 1.0, 812.0).unwrap_err();
        assert_eq!(told, "10001 keys in memory, 10000 may be");
        for (keys, overflowed) in [(MAX_KEYS, 0.0), (400.0, 3.0), (0.0, 0.0)] {
            assert!(judged(keys, overflowed).unwrap_err().contains("nothing is known"));
        }
    }
}
