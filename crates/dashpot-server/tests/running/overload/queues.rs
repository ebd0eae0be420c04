//! A leaky bucket's queue moves as slowly as its limit says now.

use super::{ASKED, Patient, quick};
use crate::client::Answer;

fn delay(answer: &Answer) -> f64 {
    assert!(answer.allowed(), "{answer:?}");
    answer.json()["delay"].as_f64().unwrap()
}

/// Ten in a hundred seconds leave ten seconds apart, five of them twenty.
#[test]
fn those_who_come_are_further_apart() {
    let rule = "limits = ['10/100s']\nalgorithm = 'leaky-bucket'\nqueue = 9";
    let patient = Patient::by(&quick("q", rule));
    patient.suffers();
    let mut client = patient.client();
    let delays: Vec<_> = (0..5).map(|_| delay(&client.check(ASKED))).collect();
    for (nth, delay) in delays.iter().enumerate() {
        let turn = 20.0 * nth as f64;
        assert!((turn - 5.0..=turn).contains(delay), "{delays:?}");
    }
    // Half of the places are left, since the queue is no longer in time than it was.
    let denied = client.check(ASKED);
    assert!(!denied.allowed());
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((15..=20).contains(&wait), "{denied:?}");
}

/// Those in front wait for as long as they were told; who comes after them waits behind them.
#[test]
fn a_line_is_not_forgotten_when_the_factor_changes() {
    let rule = "limits = ['10/100s']\nalgorithm = 'leaky-bucket'\nqueue = 9";
    let patient = Patient::by(&quick("q", rule));
    let mut client = patient.client();
    let whole: Vec<_> = (0..4).map(|_| delay(&client.check(ASKED))).collect();
    assert!((25.0..=30.0).contains(&whole[3]), "{whole:?}");
    patient.suffers();
    let next = delay(&client.check(ASKED));
    assert!((35.0..=40.0).contains(&next), "{next}");
    let next = delay(&client.check(ASKED));
    assert!((55.0..=60.0).contains(&next), "twenty behind: {next}");
    patient.recovers();
    let next = delay(&client.check(ASKED));
    assert!((75.0..=80.0).contains(&next), "{next}");
    let next = delay(&client.check(ASKED));
    assert!((85.0..=90.0).contains(&next), "ten behind: {next}");
}
