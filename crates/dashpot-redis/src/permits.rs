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
fn name(number: u64, part: usize, units: u64) -> String {
    format!("{number:016x}.{part}:{units}")
}

/// The permits that this instance has taken, and not yet tried to give back.
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

    /// Takes the part of a permit that stands for so many units, to give it back: it is not renewed any
    /// more. If it was taken by another instance, that is its first.
    pub(crate) fn claim(&self, number: u64, units: u64) -> String {
        let mut all = self.0.lock();
        let end = format!(":{units}");
        let claimed = all.get_mut(&number).and_then(|held| {
            let found = held.parts.iter().position(|part| part.ends_with(&end))?;
            Some(held.parts.remove(found))
        });
        if all.get(&number).is_some_and(|held| held.parts.is_empty()) {
            all.remove(&number);
        }
        claimed.unwrap_or_else(|| name(number, 0, units))
    }

    /// Does not hold a part any more that Redis does not know any more.
    pub(crate) fn let_go(&self, part: &str) {
        let number = part.split('.').next().and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let Some(number) = number else { return };
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
