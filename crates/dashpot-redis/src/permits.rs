//! Permits that are out, kept from lapsing while this instance lives.

use std::collections::HashMap;

use parking_lot::Mutex;
use smallvec::SmallVec;

/// A permit to be taken: one part for each check, as scripts note it.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    pub(crate) number: u64,
    /// `number.part:units`
    pub(crate) parts: SmallVec<[String; 1]>,
}

impl Permit {
    /// A number that nobody else has drawn.
    pub(crate) fn new(units: &[u64]) -> Self {
        let number = fastrand::u64(1..);
        let name = |(part, &units)| name(number, part, units);
        Self { number, parts: units.iter().enumerate().map(name).collect() }
    }
}

/// How a part of a permit is noted.
pub(crate) fn name(number: u64, part: usize, units: u64) -> String {
    format!("{number:016x}.{part}:{units}")
}

/// The permits that this instance has taken and not yet given back.
#[derive(Debug, Default)]
pub(crate) struct Permits(Mutex<HashMap<u64, Held>>);

#[derive(Clone, Debug)]
struct Held {
    key: Vec<u8>,
    parts: SmallVec<[String; 1]>,
}

impl Permits {
    pub(crate) fn hold(&self, key: &[u8], permit: &Permit) {
        let held = Held { key: key.to_owned(), parts: permit.parts.clone() };
        self.0.lock().insert(permit.number, held);
    }

    /// The part of a permit that stands for so many units. If it was taken by another instance, that is
    /// its first.
    pub(crate) fn part(&self, number: u64, units: u64) -> String {
        let held = self.0.lock();
        let parts = held.get(&number).map_or(&[] as &[_], |held| &held.parts);
        let end = format!(":{units}");
        let found = parts.iter().find(|part| part.ends_with(&end));
        found.cloned().unwrap_or_else(|| name(number, 0, units))
    }

    /// Does not hold it any more.
    pub(crate) fn let_go(&self, number: u64, part: &str) {
        let mut all = self.0.lock();
        if let Some(held) = all.get_mut(&number) {
            held.parts.retain(|own| own != part);
            if held.parts.is_empty() {
                all.remove(&number);
            }
        }
    }

    /// All that are held, by key.
    pub(crate) fn by_key(&self) -> HashMap<Vec<u8>, Vec<String>> {
        let mut by_key: HashMap<Vec<u8>, Vec<String>> = HashMap::new();
        for held in self.0.lock().values() {
            by_key.entry(held.key.clone()).or_default().extend(held.parts.iter().cloned());
        }
        by_key
    }
}
