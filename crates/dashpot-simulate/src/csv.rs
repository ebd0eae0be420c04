//! Arrivals out of a file: `seconds`, `seconds,key` or `seconds,key,cost`, a line each.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::time::Duration;

use crate::Arrival;

/// The longest line, in bytes.
const LINE_MAX: usize = 64 * 1024;

/// Arrivals that somebody wrote down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// In order, from 0 on; the busiest caller is 0.
    pub arrivals: Vec<Arrival>,
}

/// A file that is no list of arrivals, and the line that says so.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// A line is wrong.
    #[error(
        "line {line}: {what}; write seconds,key,cost as in `12.5,alice,1` (key and cost may be left out)"
    )]
    Line {
        /// Which, from 1.
        line: usize,
        /// Why.
        what: String,
    },
    /// There are none.
    #[error("there are no arrivals in it")]
    Empty,
}

impl Csv {
    /// Reads all of it. A first line of words is a heading.
    ///
    /// # Errors
    /// If a line is wrong, or there is none.
    pub fn read(mut text: impl BufRead) -> Result<Self, CsvError> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut asked: Vec<u64> = Vec::new();
        let mut line = String::new();
        for number in 1.. {
            line.clear();
            let read = io::Read::take(&mut text, LINE_MAX as u64).read_line(&mut line)?;
            if read == 0 {
                break;
            }
            let wrong = |what: String| CsvError::Line { line: number, what };
            if read == LINE_MAX && !line.ends_with('\n') {
                return Err(wrong(format!("it is longer than {LINE_MAX} bytes")));
            }
            let row = line.trim();
            if row.is_empty() || row.starts_with('#') {
                continue;
            }
            let mut cells = row.split(',').map(|cell| cell.trim().trim_matches('"'));
            let (at, key, cost) = (cells.next().unwrap_or_default(), cells.next(), cells.next());
            let Some(at) = seconds(at) else {
                // Words are a heading where there is nothing yet.
                if arrivals.is_empty() && at.starts_with(|first: char| first.is_alphabetic()) {
                    continue;
                }
                return Err(wrong(format!("`{at}` is no time in seconds")));
            };
            if let Some(more) = cells.next() {
                return Err(wrong(format!("`{more}` is a cell too many")));
            }
            let cost = cost.filter(|cost| !cost.is_empty()).unwrap_or("1");
            let cost =
                cost.parse().map_err(|_| wrong(format!("`{cost}` is no number of units")))?;
            let fresh =
                u32::try_from(names.len()).map_err(|_| wrong("too many callers".to_owned()))?;
            let caller = match names.get(key.unwrap_or_default()) {
                Some(known) => *known,
                None => {
                    names.insert(key.unwrap_or_default().to_owned(), fresh);
                    asked.push(0);
                    fresh
                }
            };
            if let Some(count) = asked.get_mut(caller as usize) {
                *count += 1;
            }
            arrivals.push(Arrival { at, caller, cost });
        }
        if arrivals.is_empty() {
            return Err(CsvError::Empty);
        }
        // Steady: who was written first goes first.
        arrivals.sort_by_key(|arrival| arrival.at);
        let first = arrivals.first().map_or(0, |arrival| arrival.at);
        let busiest =
            asked.iter().enumerate().max_by_key(|(place, count)| (**count, usize::MAX - place));
        let busiest = busiest.and_then(|(place, _)| u32::try_from(place).ok()).unwrap_or(0);
        for arrival in &mut arrivals {
            // Times may be since 1970.
            arrival.at -= first;
            arrival.caller = match arrival.caller {
                caller if caller == busiest => 0,
                0 => busiest,
                other => other,
            };
        }
        Ok(Self { arrivals })
    }

    /// From the first to right after the last.
    #[must_use]
    pub fn length(&self) -> Duration {
        let last = self.arrivals.last().map_or(0, |arrival| arrival.at);
        Duration::from_nanos(last).saturating_add(Duration::from_nanos(1))
    }
}

/// Seconds with decimals, in whole nanoseconds: exactly.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let nanos = format!("{:0<9.9}", part).parse::<u64>().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, u32, u64)>, String> {
        let csv = Csv::read(text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(csv.arrivals.iter().map(|one| (one.at, one.caller, one.cost)).collect())
    }

    #[test]
    fn lines_of_all_kinds() {
        let read = read("time,key,cost\n# a remark\n\n5.5,bob,2\n5,alice\n6.000000001,bob,\n");
        // Bob asks most, so he is 0.
        let seen = vec![(0, 1, 1), (500_000_000, 0, 2), (1_000_000_001, 0, 1)];
        assert_eq!(read, Ok(seen));
    }

    #[test]
    fn the_last_moment_there_is_has_an_end() {
        let csv = Csv::read("0\n18446744073.709551615\n".as_bytes()).unwrap();
        assert_eq!(csv.length().as_nanos(), u128::from(u64::MAX) + 1);
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, told) in [
            ("1\nsoon", "line 2: `soon` is no time in seconds"),
            ("1,a,b", "line 1: `b` is no number of units"),
            ("1,a,1,x", "line 1: `x` is a cell too many"),
            ("-1", "line 1: `-1` is no time"),
            ("", "there are no arrivals in it"),
            ("time,key", "there are no arrivals in it"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(told), "{text:?}: {error}");
        }
    }
}
