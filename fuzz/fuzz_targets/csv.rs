#![no_main]

//! Arrivals that somebody wrote down.

use dashpot_simulate::{Csv, CsvError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| match Csv::read(data) {
    Ok(Csv { arrivals }) => {
        assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
        assert_eq!(arrivals.first().map(|arrival| arrival.at), Some(0));
        assert!(arrivals.len() <= data.len());
        // The busiest is 0, and numbers have no gaps.
        let callers = arrivals.iter().map(|arrival| arrival.caller).max().unwrap_or(0) as usize + 1;
        let mut asked = vec![0_u64; callers];
        arrivals.iter().for_each(|arrival| asked[arrival.caller as usize] += 1);
        assert!(asked.iter().all(|count| (1..=asked[0]).contains(count)), "{asked:?}");
        let last = arrivals.last().map_or(0, |arrival| arrival.at);
        let length = Csv { arrivals }.length();
        assert!(length.as_nanos() > u128::from(last));
    }
    Err(CsvError::Line { line, .. }) => {
        assert!((1..=data.split(|byte| *byte == b'\n').count()).contains(&line));
    }
    Err(error) => assert!(!error.to_string().is_empty()),
});
