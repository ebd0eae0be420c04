//! What the hardware allows: a table of 16-byte slots, one hash, one probe, one compare-and-swap.
//!
//! Not a limiter to use. It takes two keys of the same hash for one, cannot grow, forgets nothing,
//! and knows neither `remaining` nor a wait.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use quanta::Clock;

use crate::peer::{Peer, Setup};

pub(crate) struct Sketch {
    clock: Clock,
    seed: RandomState,
    slots: Box<[Slot]>,
    unit: u64,
    tolerance: u64,
}

/// Empty as long as the print is 0.
#[derive(Default)]
#[repr(align(16))]
struct Slot {
    print: AtomicU64,
    /// When the bucket is full again: the theoretical arrival time.
    full_at: AtomicU64,
}

impl Sketch {
    fn slot(&self, key: &str) -> &Slot {
        let mut hasher = self.seed.build_hasher();
        hasher.write(key.as_bytes());
        let print = hasher.finish().max(1);
        let mask = self.slots.len() - 1;
        let mut at = (print >> 20) as usize & mask;
        loop {
            let slot = &self.slots[at];
            match slot.print.load(Ordering::Acquire) {
                found if found == print => return slot,
                0 => {
                    let (order, fail) = (Ordering::AcqRel, Ordering::Acquire);
                    match slot.print.compare_exchange(0, print, order, fail) {
                        Ok(_) => return slot,
                        Err(found) if found == print => return slot,
                        Err(_) => {}
                    }
                }
                _ => {}
            }
            at = (at + 1) & mask;
        }
    }
}

impl Peer for Sketch {
    fn new(setup: &Setup) -> Self {
        let slots = (2 * setup.keys).next_power_of_two();
        let unit = setup.rate.unit().as_nanos() as u64;
        Self {
            clock: Clock::new(),
            seed: RandomState::default(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            unit,
            tolerance: unit * u64::from(setup.rate.burst),
        }
    }

    fn check(&self, key: &String) -> bool {
        let slot = self.slot(key);
        let now = self.clock.delta_as_nanos(0, self.clock.raw());
        let mut full_at = slot.full_at.load(Ordering::Acquire);
        loop {
            let later = full_at.max(now) + self.unit;
            if later > now + self.tolerance {
                return false;
            }
            let (order, fail) = (Ordering::AcqRel, Ordering::Acquire);
            match slot.full_at.compare_exchange_weak(full_at, later, order, fail) {
                Ok(_) => return true,
                Err(found) => full_at = found,
            }
        }
    }
}
