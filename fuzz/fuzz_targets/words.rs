#![no_main]

//! Words of rule files, questions and command lines: facts, algorithms, zones, shares.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use dashpot::{Algorithm, Consistency, Percent, Zone};
use dashpot_rules::{Fact, MaxBody, Upstream};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    stays_the_same::<Algorithm>(text);
    stays_the_same::<Consistency>(text);
    stays_the_same::<Fact>(text);
    stays_the_same::<Percent>(text);
    stays_the_same::<Zone>(text);
    let _ = (text.parse::<MaxBody>().is_ok(), text.parse::<Upstream>().is_ok());
});

/// As it is told, it is read as what it was.
fn stays_the_same<T: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(read) => {
            let told = read.to_string();
            assert_eq!(told.parse().ok(), Some(read), "{told}");
        }
        Err(error) => assert!(error.to_string().len() <= 2 * text.len() + 500, "{error}"),
    }
}
