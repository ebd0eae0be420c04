//! How much memory instances take, all along.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::fleet::Door;
use crate::soak::{Soak, lock};

/// What one that lives all along may grow by, once it has warmed up: a twentieth, and what an allocator keeps of a busy
/// moment. In a minute they grow from some 5 MB by 0.2 to 0.9, in three by 0.4 to 0.5: it comes to an end. Two hundred new
/// callers a second, of whom all is kept, would be some 400 bytes each in a minute, 130 in three, 40 in ten.
const LIVED: Growth = Growth { share: 0.05, bytes: 2e6 };
/// One that is started again begins with little, so that the first of its life may be compared with the end of it; and
/// the one in memory takes some more the longer its overflow cells are used, up to 1.6 MB for each limit.
const STARTED: Growth = Growth { share: 0.1, bytes: 8e6 };

#[derive(Clone, Copy, Debug)]
struct Growth {
    share: f64,
    bytes: f64,
}

/// When, and how many bytes.
type Samples = Vec<(f64, f64)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<&'static str, (Door, Samples)>>>);

/// The most in the second quarter of a soak, and in the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    pub(crate) before: f64,
    pub(crate) after: f64,
}

impl Most {
    fn of(samples: &[(f64, f64)], length: f64) -> Self {
        let most = |from: f64, to: f64| {
            let within = samples.iter().filter(|(at, _)| (from * length..to * length).contains(at));
            within.map(|(_, bytes)| *bytes).fold(0.0, f64::max)
        };
        Self { before: most(0.25, 0.5), after: most(0.75, 1.0) }
    }

    pub(crate) fn is_flat(self, door: Door) -> bool {
        let may = if door.lives_on() { LIVED } else { STARTED };
        let was_seen = self.before > 0.0 && self.after > 0.0;
        was_seen && self.after <= self.before.mul_add(1.0 + may.share, may.bytes)
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
                    let mut noted = lock(&noted.0);
                    let (_, samples) = noted.entry(door.name()).or_insert((door, Vec::new()));
                    samples.push((soak.now(), bytes as f64));
                }
                thread::sleep(Duration::from_millis(250));
            }
        });
        memory
    }

    pub(crate) fn most(&self, length: f64) -> Vec<(Door, Most)> {
        let samples = lock(&self.0);
        samples.values().map(|(door, samples)| (*door, Most::of(samples, length))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred seconds of somebody who takes this much, four times a second.
    fn most(bytes: impl Fn(f64) -> f64) -> Most {
        let samples: Vec<_> =
            (0..400).map(|n| f64::from(n) / 4.0).map(|at| (at, bytes(at))).collect();
        Most::of(&samples, 100.0)
    }

    #[test]
    fn who_warms_up_is_flat_and_who_leaks_is_not() {
        let warm = most(|at| at.min(20.0).mul_add(0.5e6, 8e6));
        assert!(warm.is_flat(Door::Second), "{warm:?}");
        // Ninety bytes of each of a thousand calls a second, and half of that.
        assert!(!most(|at| at.mul_add(90e3, 10e6)).is_flat(Door::Second));
        assert!(most(|at| at.mul_add(45e3, 10e6)).is_flat(Door::Second));
        assert!(!most(|at| at.mul_add(220e3, 10e6)).is_flat(Door::Alone));
    }

    #[test]
    fn who_was_never_seen_is_not_flat() {
        assert!(!Most::of(&[], 100.0).is_flat(Door::Second));
        assert!(!Most::of(&[(30.0, 1e6)], 100.0).is_flat(Door::Second));
        assert!(!Most::of(&[(80.0, 1e6)], 100.0).is_flat(Door::Second));
        assert!(Most::of(&[(30.0, 1e6), (80.0, 1e6)], 100.0).is_flat(Door::Second));
    }
}
