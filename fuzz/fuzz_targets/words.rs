#![no_main]

//! Words of rule files, questions and command lines: facts, algorithms, zones, shares, upstreams, sizes.

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
    stays_the_same::<Upstream>(text);
    stays_the_same::<Zone>(text);
    // Nobody tells a size.
    match text.parse::<MaxBody>() {
        Ok(MaxBody::Unlimited) => assert_eq!(text, "unlimited"),
        Ok(size @ MaxBody::Bytes(bytes)) => assert_eq!(bytes.to_string().parse(), Ok(size)),
        Err(error) => is_short(&error, text),
    }
});

/// As it is told, it is read as what it was.
fn stays_the_same<T: FromStr<Err: Display> + Display + Debug + PartialEq>(text: &str) {
    match text.parse::<T>() {
        Ok(read) => {
            let told = read.to_string();
            assert_eq!(told.parse().ok(), Some(read), "{told}");
        }
        Err(error) => is_short(&error, text),
    }
}

/// What is wrong fits a line, if the text does.
fn is_short(error: &impl Display, text: &str) {
    assert!(error.to_string().len() <= 2 * text.len() + 500, "{error}");
}
