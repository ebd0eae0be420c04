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
#[derive(Default)]
struct Bucket {
    full: Range,
    interval: i128,
    /// How long a denial was on its way, at most.
    late: i128,
    /// What was asked about it, to be told when something is wrong.
    past: String,
}

pub(crate) struct Model {
    buckets: HashMap<String, Bucket>,
    /// By so much the clock it is decided by may differ from the machine's. In memory it follows that one, and is steered
    /// gently.
    clock: i128,
    /// A bucket that goes on at another rate may lose so much, in favour of the limit: it is kept in whole ones of these.
    tick: i128,
    /// For so long a denial is repeated without asking the store, by what is left of the wait since it arrived.
    denial_memory: i128,
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

    /// How long the bucket may take to be full, for this answer to be right, before anything was taken.
    fn explains(&self, told: Told, denial_memory: i128) -> Result<Range, String> {
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
        let since = if limited { denial_memory } else { 0 };
        within(all - after - (remaining + 1) * self.interval + 1 - since, most);
        Ok((range.0.max(0), range.1))
    }
}

/// What is rounded up to so many seconds.
fn seconds(told: i128) -> Range {
    if told == 0 { (0, 0) } else { ((told - 1) * SECOND + 1, told * SECOND) }
}

impl Model {
    pub(crate) fn in_memory() -> Self {
        Self { buckets: HashMap::new(), clock: SECOND / 1000, tick: NANOSECOND, denial_memory: 0 }
    }

    pub(crate) fn on_redis() -> Self {
        let tick = 1000 * NANOSECOND;
        Self { buckets: HashMap::new(), clock: tick, tick, denial_memory: SECOND / 10 }
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
        let between = (before - self.clock, now() + self.clock);
        let answers: Vec<Told> = replies.iter().map(told).collect();
        for ((key, numbers), answer) in asked.iter().zip(&answers) {
            if let Err(why) = self.explain(key, numbers, between, *answer) {
                panic!("{key}: {why}, after\n{}", self.buckets[key].past);
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
        let [from, to] = [earliest, latest].map(|time| time / NANOSECOND / 1000);
        bucket.past += &format!("from {from} to {to} us: {numbers:?} {told:?}\n");
        let limited = told[0] == 1;
        let mut full = bucket.full;
        let other_rate = bucket.interval != question.interval;
        if other_rate {
            full.1 += self.tick;
        }
        let late = if limited { bucket.late } else { 0 };
        let left = ((full.0 - latest).max(0), (full.1 - earliest + late).max(0));
        let explained = question.explains(told, self.denial_memory)?;
        let both = (left.0.max(explained.0), left.1.min(explained.1));
        if both.0 > both.1 {
            let [left, explained] = [left, explained].map(told_in_seconds);
            return Err(format!("{left} s were used, but this is right for {explained} s"));
        }
        if limited && self.denial_memory > 0 {
            bucket.late = bucket.late.max(latest - earliest);
        } else if !limited && question.quantity > 0 {
            let taken = question.quantity * question.interval;
            let least = (earliest + both.0).max(full.0.max(earliest)) + taken;
            let most = (latest + both.1).min(full.1.max(latest)) + taken;
            (bucket.full, bucket.interval) = ((least, most), question.interval);
        } else if both.0 > 0 && !other_rate {
            // Nothing was taken, but we know better now.
            let known = (full.0.max(earliest + both.0), full.1.min(latest + both.1));
            bucket.full = known;
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
