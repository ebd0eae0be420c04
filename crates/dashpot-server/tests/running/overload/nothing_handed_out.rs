//! What was used stays used, whichever way the factor goes.

use super::{ASKED, Patient, limit, passed, quick};
use crate::client::Client;

fn by(algorithm: &str) -> (Patient, Client) {
    let rule = format!("limits = ['10/day']\nalgorithm = '{algorithm}'");
    let patient = Patient::by(&quick("r", &rule));
    let client = patient.client();
    (patient, client)
}

/// Counted are units: six of ten leave none of five, and four of ten again.
#[test]
fn windows_go_on_with_the_units_used() {
    for algorithm in ["fixed-window", "sliding-log", "sliding-window"] {
        let (patient, mut client) = by(algorithm);
        assert_eq!(passed(&mut client, ASKED, 6), 6, "{algorithm}");
        patient.suffers();
        let look = patient.look();
        assert_eq!((limit(&look), look.remaining()), (5, 0), "{algorithm}: {look:?}");
        assert_eq!(passed(&mut client, ASKED, 3), 0, "{algorithm}");
        patient.recovers();
        let look = patient.look();
        assert_eq!((limit(&look), look.remaining()), (10, 4), "{algorithm}: {look:?}");
        assert_eq!(passed(&mut client, ASKED, 9), 4, "{algorithm}");
    }
}

/// Counted is time: six tenths of a day are three of five.
#[test]
fn a_bucket_goes_on_with_its_depth_in_time() {
    let (patient, mut client) = by("token-bucket");
    assert_eq!(passed(&mut client, ASKED, 6), 6);
    patient.suffers();
    let look = patient.look();
    assert_eq!((limit(&look), look.remaining()), (5, 2), "{look:?}");
    assert_eq!(passed(&mut client, ASKED, 1), 1);
    patient.recovers();
    let look = patient.look();
    assert_eq!((limit(&look), look.remaining()), (10, 2), "one of five is two of ten: {look:?}");
    assert_eq!(passed(&mut client, ASKED, 9), 2);
    patient.suffers();
    assert_eq!(passed(&mut client, ASKED, 9), 0);
}

/// Up and down again and again: never more than there is.
#[test]
fn nobody_gains_by_its_going_up_and_down() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let (patient, mut client) = by(algorithm);
        let mut all = 0;
        for nth in 0..6 {
            match nth % 2 {
                0 => patient.suffers(),
                _ => patient.recovers(),
            }
            all += passed(&mut client, ASKED, 2);
            // What is said to be left is no more than there is.
            let left = patient.look().remaining() as usize;
            let most = if nth % 2 == 0 { 5 } else { 10 };
            assert!(left <= most && left + all <= 10, "{algorithm}: {left} after {all}");
        }
        patient.recovers();
        all += passed(&mut client, ASKED, 20);
        assert!(all <= 10, "{algorithm}: {all}");
        // Of a bucket's time, a unit of five takes what two of ten do.
        let least = if algorithm == "token-bucket" { 6 } else { 10 };
        assert!(all >= least, "{algorithm}: {all}");
    }
}

/// A window that is full by the lower limit is the same window by the whole one.
#[test]
fn a_denial_is_not_remembered_for_longer_than_the_factor() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let (patient, mut client) = by(algorithm);
        patient.suffers();
        assert_eq!(passed(&mut client, ASKED, 9), 5, "{algorithm}");
        patient.recovers();
        let most = if algorithm == "token-bucket" { 0 } else { 5 };
        assert_eq!(passed(&mut client, ASKED, 9), most, "{algorithm}");
    }
}
