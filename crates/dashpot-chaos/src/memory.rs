//! How much memory instances take, all along.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::fleet::Door;
use crate::soak::{Soak, lock};

/// What it may grow by, once it has warmed up: a tenth, and what an allocator keeps of a busy moment.
const GROWTH: f64 = 1.1;
const BUSY: f64 = 8e6;

/// When, and how many bytes.
type Samples = Vec<(f64, f64)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<&'static str, Samples>>>);

/// The most in the second quarter of a soak, and in the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) before: f64,
    pub(crate) after: f64,
}

impl Most {
    pub(crate) fn is_flat(self) -> bool {
        let was_seen = self.before > 0.0 && self.after > 0.0;
        was_seen && self.after <= self.before.mul_add(GROWTH, BUSY)
    }
}

impl Memory {
    pub(crate) fn watch(soak: &Arc<Soak>) -> Self {
        let memory = Self::default();
        let (noted, soak) = (memory.clone(), soak.clone());
        thread::spawn(move || {
            while !soak.is_over() {
                for door in Door::ALL {
                    let Some(bytes) = soak.fleet.member(door).instance.memory() else { continue };
                    lock(&noted.0).entry(door.name()).or_default().push((soak.now(), bytes as f64));
                }
                thread::sleep(Duration::from_millis(250));
            }
        });
        memory
    }

    pub(crate) fn most(&self, length: f64) -> BTreeMap<&'static str, Most> {
        let samples = lock(&self.0);
        let most = |samples: &[(f64, f64)], from: f64, to: f64| {
            let within = samples.iter().filter(|(at, _)| (from * length..to * length).contains(at));
            within.map(|(_, bytes)| *bytes).fold(0.0, f64::max)
        };
        let each = samples.iter().map(|(door, samples)| {
            let most = Most { before: most(samples, 0.25, 0.5), after: most(samples, 0.75, 1.0) };
            (*door, most)
        });
        each.collect()
    }
}
