//! Whatever people do at a gate: everything that happens is what happens to a plain list of them.

use std::time::Duration;

use dashpot::Class;
use dashpot_testkit::strategies::cases;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::line_model::Settings;
use crate::street::{Step, Street};

fn class() -> impl Strategy<Value = Class> {
    prop::sample::select(Class::ALL.to_vec())
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => class().prop_map(Step::Try),
        8 => class().prop_map(Step::Enter),
        1 => class().prop_map(Step::Hesitate),
        1 => Just(Step::Anyway),
        2 => any::<usize>().prop_map(Step::Look),
        2 => any::<usize>().prop_map(Step::GiveUp),
        6 => (any::<usize>(), 0_u8..4).prop_map(|(who, word)| Step::Leave(who, word)),
        3 => (0_u64..40).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
        1 => (0_u64..8).prop_map(Step::Adjust),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let parts = (1_u8..=100).prop_flat_map(|normal| (Just(normal), 1..=normal));
    let parts = prop_oneof![Just((100, 100)), Just((80, 50)), parts];
    (1_u64..8, parts, 0_usize..6, 1_u64..60).prop_map(|(limit, parts, places, wait)| {
        let (normal, background) = parts;
        Settings { limit, normal, background, places, wait: Duration::from_millis(wait) }
    })
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_gate_is_a_list_of_people(settings in settings(), steps in vec(step(), 1..120)) {
        let mut street = Street::new(settings, true);
        for step in &steps {
            street.step(step)?;
            street.compare()?;
        }
        street.clear()?;
    }

    /// Those who are woken look when they like, or go away, or never look. Nobody gets past a limit for it, and nobody who looks
    /// in the end was forgotten.
    #[test]
    fn nobody_is_forgotten_whoever_looks_when(
        settings in settings(), steps in vec(step(), 1..120)
    ) {
        let mut street = Street::new(settings, false);
        for step in &steps {
            street.step(step)?;
            prop_assert_eq!(street.gate.status().in_flight, street.inside.len() as u64);
        }
        street.serve()?;
        for class in Class::ALL.into_iter().filter(|class| street.waits(*class)) {
            let status = street.gate.status();
            prop_assert!(status.in_flight >= street.model.settings.most(class), "{status:?}");
        }
        street.clear()?;
    }
}
