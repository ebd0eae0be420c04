//! What every answer may be: worked out exactly from what the page says, with nothing known of the time it was given
//! but that it lies between the question and the answer.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use dashpot_testkit::redis::Connection;

use crate::scene::{Told, told, words};

/// Of a nanosecond. Everything here is a whole number of them, as long as counts have no other factors than these
/// beyond those of a second.
const PARTS: i128 = 2 * 3 * 5 * 7 * 11 * 13;
const NANOSECOND: i128 = PARTS;
const SECOND: i128 = 1_000_000_000 * PARTS;

/// Bounds of a number.
type Range = (i128, i128);

/// A bucket: when it will be full again, as far as that is known, and at what rate it was last taken from.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full: Range,
    interval: i128,
}

pub(crate) struct Model {
    buckets: HashMap<String, Bucket>,
    /// The clock it is decided by tells whole ones of these. Nor is more than one of them lost, in favour of the limit,
    /// by a bucket that goes on at another rate.
    tick: i128,
}

struct Question {
    limit: i128,
    interval: i128,
    quantity: i128,
}

impl Question {
    fn new(numbers: &[i64]) -> Self {
        let [max_burst, count, period] = [0, 1, 2].map(|at| i128::from(numbers[at]));
        assert_eq!(period * SECOND % count, 0, "{numbers:?} cannot be counted here");
        let quantity = numbers.get(3).map_or(1, |quantity| i128::from(*quantity));
        Self { limit: max_burst + 1, interval: period * SECOND / count, quantity }
    }

    /// How long a full bucket takes to come back may be, for this answer to be right, before anything was taken.
    fn explains(&self, told: Told) -> Result<Range, String> {
        let [limited, limit, remaining, retry, reset] = told.map(i128::from);
        let (all, taken) = (self.limit * self.interval, self.quantity * self.interval);
        if limit != self.limit || !(0..=1).contains(&limited) || remaining < 0 || reset < 0 {
            return Err("is no answer to this".to_owned());
        }
        let limited = limited == 1;
        let never = self.quantity > self.limit;
        if (retry == -1) != (!limited || never) || (never && !limited) {
            return Err("contradicts itself".to_owned());
        }
        // Who is limited has taken nothing.
        let after = if limited { 0 } else { taken };
        let mut range = if limited { (all - taken + 1, i128::MAX) } else { (0, all - taken) };
        let mut within = |least: i128, most: i128| {
            range = (range.0.max(least), range.1.min(most));
        };
        within(seconds(reset).0 - after, seconds(reset).1 - after);
        if limited && !never {
            within(seconds(retry).0 + all - taken, seconds(retry).1 + all - taken);
        }
        // Nothing remains of a bucket that is more than empty, too.
        let most = if remaining == 0 { i128::MAX } else { all - after - remaining * self.interval };
        within(all - after - (remaining + 1) * self.interval + 1, most);
        Ok((range.0.max(0), range.1))
    }
}

/// What is rounded up to so many seconds.
fn seconds(told: i128) -> Range {
    if told == 0 { (0, 0) } else { ((told - 1) * SECOND + 1, told * SECOND) }
}

impl Model {
    pub(crate) fn in_memory() -> Self {
        Self { buckets: HashMap::new(), tick: NANOSECOND }
    }

    pub(crate) fn on_redis() -> Self {
        Self { buckets: HashMap::new(), tick: 1000 * NANOSECOND }
    }

    /// Asks, and holds the answer to this.
    #[track_caller]
    pub(crate) fn ask(&mut self, connection: &mut Connection, key: &str, numbers: &[i64]) -> Told {
        self.ask_all(connection, &[(key.to_owned(), numbers.to_vec())])[0]
    }

    /// The same with several that are sent at once.
    #[track_caller]
    pub(crate) fn ask_all(
        &mut self,
        connection: &mut Connection,
        asked: &[(String, Vec<i64>)],
    ) -> Vec<Told> {
        let commands: Vec<_> = asked.iter().map(|(key, numbers)| words(key, numbers)).collect();
        let before = now();
        let replies = connection.commands(&commands).unwrap();
        let between = (before - self.tick, now());
        let answers: Vec<Told> = replies.iter().map(told).collect();
        for ((key, numbers), answer) in asked.iter().zip(&answers) {
            if let Err(why) = self.explain(key, numbers, between, *answer) {
                panic!("{key} {numbers:?} {answer:?}: {why}");
            }
        }
        answers
    }

    /// Whether this answer is one that could be given in this time.
    fn explain(
        &mut self,
        key: &str,
        numbers: &[i64],
        (earliest, latest): Range,
        told: Told,
    ) -> Result<(), String> {
        let question = Question::new(numbers);
        let bucket = self.buckets.entry(key.to_owned()).or_default();
        let mut full = bucket.full;
        let other_rate = bucket.interval != question.interval;
        if other_rate {
            full.1 += self.tick;
        }
        let left = ((full.0 - latest).max(0), (full.1 - earliest).max(0));
        let explained = question.explains(told)?;
        let both = (left.0.max(explained.0), left.1.min(explained.1));
        if both.0 > both.1 {
            let [left, explained] = [left, explained].map(told_in_seconds);
            return Err(format!("{left} s were used, but this is right for {explained} s"));
        }
        if told[0] == 0 && question.quantity > 0 {
            let taken = question.quantity * question.interval;
            let least = (earliest + both.0).max(full.0.max(earliest)) + taken;
            let most = (latest + both.1).min(full.1.max(latest)) + taken;
            *bucket = Bucket { full: (least, most), interval: question.interval };
        } else if both.0 > 0 && !other_rate {
            // Nothing was taken, but we know better now.
            bucket.full.0 = full.0.max(earliest + both.0);
            bucket.full.1 = full.1.min(latest + both.1);
        }
        Ok(())
    }
}

fn told_in_seconds((least, most): Range) -> String {
    format!("{}..{}", least as f64 / SECOND as f64, most as f64 / SECOND as f64)
}

fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128 * NANOSECOND
}

mod tests {
    use super::*;

    /// From one second on, within a tenth of one.
    const SPAN: Range = (SECOND, SECOND + SECOND / 10);

    fn explains(model: &mut Model, numbers: &[i64], told: Told) -> bool {
        model.explain("k", numbers, SPAN, told).is_ok()
    }

    #[test]
    fn it_knows_right_answers_from_wrong_ones() {
        let mut model = Model::in_memory();
        for wrong in [[1, 2, 1, 60, 60], [0, 2, 0, -1, 60], [0, 2, 1, -1, 61], [0, 1, 1, -1, 60]] {
            assert!(!explains(&mut model, &[1, 1, 60], wrong), "{wrong:?}");
        }
        assert!(explains(&mut model, &[1, 1, 60], [0, 2, 1, -1, 60]));
        assert!(!explains(&mut model, &[1, 1, 60], [0, 2, 1, -1, 60]), "one more is used now");
        assert!(explains(&mut model, &[1, 1, 60], [0, 2, 0, -1, 120]));
        for wrong in
            [[0, 2, 0, -1, 180], [1, 2, 0, 59, 120], [1, 2, 0, 60, 119], [1, 2, 1, 60, 120]]
        {
            assert!(!explains(&mut model, &[1, 1, 60], wrong), "{wrong:?}");
        }
        assert!(explains(&mut model, &[1, 1, 60], [1, 2, 0, 60, 120]));
        // With other numbers it goes on where it was.
        assert!(explains(&mut model, &[0, 1, 1], [1, 1, 0, 120, 120]));
        assert!(explains(&mut model, &[0, 1, 1, 0], [1, 1, 0, 119, 120]));
        assert!(explains(&mut model, &[6, 7, 420, 4], [0, 7, 1, -1, 360]));
        assert!(!explains(&mut model, &[6, 7, 420, 4], [1, 7, 1, -1, 360]));
        assert!(explains(&mut model, &[6, 7, 420, 8], [1, 7, 1, -1, 360]));
        assert!(explains(&mut model, &[6, 7, 420, 4], [1, 7, 1, 180, 360]));
    }

    #[test]
    fn it_knows_that_time_passes() {
        let mut model = Model::in_memory();
        assert!(explains(&mut model, &[0, 1, 2], [0, 1, 0, -1, 2]));
        let mut later = |span, told| model.explain("k", &[0, 1, 2, 0], span, told).is_ok();
        assert!(later((2 * SECOND, 3 * SECOND + SECOND / 5), [0, 1, 1, -1, 0]));
        assert!(!later((2 * SECOND, 3 * SECOND - SECOND / 5), [0, 1, 1, -1, 0]));
    }
}
