//! Pages that change hands: whoever still looks at one finds nothing there that is not his.

use std::sync::Arc;

use super::{Effort, Scene, any_keys, explore, per_hour, together, work};
use crate::Policy;

const EFFORT: Effort = Effort { interruptions: Some(1), schedules: 1_000 };

/// A table whose page is full, and a policy that has none yet.
struct Exchange {
    scene: Arc<Scene>,
    one: Policy,
    other: Policy,
    keys: Vec<String>,
}

impl Exchange {
    /// `limit` is the other policy's.
    fn new(limit: u64) -> Arc<Self> {
        let (scene, one, other) = (Scene::new(100), per_hour("one", 10), per_hour("other", limit));
        let keys = scene.fill_page(&one);
        Arc::new(Self { scene, one, other, keys })
    }

    /// Makes the keys of the first table move, and gives their page to the other, with a key of the
    /// same name.
    fn change_hands(&self) {
        let new = any_keys().nth(self.keys.len()).unwrap();
        assert!(self.scene.take(&self.one, &new));
        assert!(self.scene.take(&self.other, &self.keys[0]));
    }

    /// Each has been charged what was taken of it, and nothing of the other's.
    fn audit(&self, used: u64) {
        assert_eq!(self.scene.used(&self.one, &self.keys[0]), used);
        assert_eq!(self.scene.used(&self.other, &self.keys[0]), 1);
        for key in &self.keys[1..] {
            assert_eq!(self.scene.used(&self.one, key), 1, "{key}");
        }
        self.scene.audit();
    }
}

/// Asks about the first table's keys while its page changes hands.
fn taken_meanwhile(limit: u64, wanted: fn(&Exchange) -> Vec<(&Policy, &str)>) {
    explore(EFFORT, move || {
        let exchange = Exchange::new(limit);
        let taken = together([
            work!([exchange] { exchange.change_hands(); true }),
            work!([exchange] exchange.scene.take_all(&wanted(&exchange))),
        ]);
        assert_eq!(taken, [true, true]);
        exchange.audit(1 + wanted(&exchange).len() as u64);
    });
}

/// The other policy's key is used up. That is no reason to deny the first's.
#[test]
fn a_check_is_not_denied_by_anothers_key() {
    taken_meanwhile(1, |exchange| vec![(&exchange.one, &exchange.keys[0])]);
}

/// The other policy's key has units left. They are not the first's to take.
#[test]
fn a_check_does_not_charge_anothers_key() {
    taken_meanwhile(10, |exchange| vec![(&exchange.one, &exchange.keys[0])]);
}

/// The same for a call that holds its keys.
#[test]
fn a_call_on_two_keys_does_not_charge_anothers() {
    taken_meanwhile(10, |exchange| vec![(&exchange.one, &exchange.keys[0]); 2]);
}

/// A key that is new is put where its table is by now.
#[test]
fn a_new_key_is_not_put_among_anothers() {
    explore(EFFORT, || {
        let exchange = Exchange::new(10);
        together([
            work!([exchange] exchange.change_hands()),
            work!([exchange] assert!(exchange.scene.take(&exchange.one, "newcomer"))),
        ]);
        assert_eq!(exchange.scene.used(&exchange.one, "newcomer"), 1);
        assert_eq!(exchange.scene.used(&exchange.other, "newcomer"), 0);
        exchange.audit(1);
    });
}
