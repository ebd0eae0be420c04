//! `CL.THROTTLE` by a clock that is set: redis-cell's own vectors, and an exact model of what it means.

use std::time::Duration;

use dashpot::{Check, ManualClock, MemoryStore, Timestamp};
use dashpot_resp::{Limits, Next, Policies, Reader, Session, Surroundings};
use num_bigint::BigInt;
use proptest::collection::vec;
use proptest::prelude::*;

struct Open;
impl Surroundings for Open {}

struct Server {
    clock: ManualClock,
    store: MemoryStore,
    policies: Policies,
}

impl Server {
    fn new() -> Self {
        let clock = ManualClock::new(Timestamp::from_nanos(1_700_000_000_123_456_789));
        let store = MemoryStore::with_clock(clock.clone());
        Self { clock, store, policies: Policies::new("(throttle)") }
    }

    /// Says a line, and hears the text of the answer.
    fn say(&mut self, line: &str) -> String {
        let (mut session, mut out, mut reader) =
            (Session::new(1, &Open), Vec::new(), Reader::default());
        let line = format!("{line}\r\n");
        let (request, _) = reader.read(line.as_bytes(), Limits::KNOWN).unwrap().unwrap();
        if let Next::Throttle(asked) = session.answer(request, &Open, &mut out) {
            match self.policies.get(&asked.terms, |_| Ok(())) {
                Ok(policy) => {
                    let check = Check::new(policy, asked.key).cost(asked.quantity);
                    asked.answer(&self.store.decide_now(&[check]), &mut out);
                }
                Err(wrong) => wrong.answer(&mut out),
            }
        }
        String::from_utf8(out).unwrap()
    }

    fn ask(&mut self, line: &str) -> [i64; 5] {
        let answer = self.say(&format!("CL.THROTTLE {line}"));
        let rest = answer.strip_prefix("*5\r\n").unwrap_or_else(|| panic!("{line}: {answer}"));
        let numbers: Vec<i64> = rest.lines().map(|line| line[1..].parse().unwrap()).collect();
        numbers.try_into().unwrap()
    }

    fn at(&self, millis: u64) {
        let start = 1_700_000_000_123_456_789;
        self.clock.set(Timestamp::from_nanos(start + millis * 1_000_000));
    }
}

#[test]
fn the_example_of_the_readme() {
    let mut server = Server::new();
    assert_eq!(server.ask("user123 15 30 60"), [0, 16, 15, -1, 2]);
    assert_eq!(server.ask("user123 15 30 60 1"), [0, 16, 14, -1, 4]);
}

/// A bucket of five, one a second: (milliseconds, quantity) and limited, remaining, retry, reset.
#[test]
fn the_vectors_of_its_tests() {
    let mut server = Server::new();
    for ((at, quantity), [limited, remaining, retry, reset]) in [
        ((0, 6), [1, 5, -1, 0]),
        ((0, 1), [0, 4, -1, 1]),
        ((0, 1), [0, 3, -1, 2]),
        ((0, 1), [0, 2, -1, 3]),
        ((0, 1), [0, 1, -1, 4]),
        ((0, 1), [0, 0, -1, 5]),
        ((0, 1), [1, 0, 1, 5]),
        ((3000, 1), [0, 2, -1, 3]),
        ((3100, 1), [0, 1, -1, 4]),
        ((4000, 1), [0, 1, -1, 4]),
        ((8000, 1), [0, 4, -1, 1]),
        ((9500, 1), [0, 4, -1, 1]),
        ((9500, 0), [0, 4, -1, 1]),
        ((9500, 2), [0, 2, -1, 3]),
        ((9500, 5), [1, 2, 3, 3]),
    ] {
        server.at(at);
        let answer = server.ask(&format!("foo 4 1 1 {quantity}"));
        assert_eq!(answer, [limited, 5, remaining, retry, reset], "{quantity} at {at} ms");
    }
}

#[test]
fn what_is_wrong_is_told_as_redis_cell_tells_it() {
    let mut server = Server::new();
    let usage = "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]\r\n";
    for (line, answer) in [
        ("", usage),
        (" a", usage),
        (" a 1 2", usage),
        (" a 1 2 3 4 5", usage),
        (" a x 2 3", "-Cell error: Store error: Couldn't parse as integer: x\r\n"),
        (" a 1 2.0 3", "-Cell error: Store error: Couldn't parse as integer: 2.0\r\n"),
        (" a 1 2 \"\"", "-Cell error: Store error: Couldn't parse as integer: \r\n"),
        (" a 1 2 3 \"a\\r\\nb\"", "-Cell error: Store error: Couldn't parse as integer: a  b\r\n"),
        (
            " a 1 2 9223372036854775808",
            "-Cell error: Store error: Couldn't parse as integer: 9223372036854775808\r\n",
        ),
        (" a 1 0 60", "-Cell error: Store error: Zero rates are not supported\r\n"),
        (" a 1 30 0", "-Cell error: Store error: Zero rates are not supported\r\n"),
        (" a -1 30 60", "-Cell error: Store error: max_burst must not be negative\r\n"),
        (" a 1 -30 60", "-Cell error: Store error: count must not be negative\r\n"),
        (" a 1 30 -60", "-Cell error: Store error: period must not be negative\r\n"),
        (" a 1 30 60 -1", "-Cell error: Store error: quantity must not be negative\r\n"),
        (" a 1 1 3155695201", "-Cell error: Store error: period is more than 100 years\r\n"),
    ] {
        assert_eq!(server.say(&format!("CL.THROTTLE{line}")), answer, "{line}");
        assert_eq!(server.say(&format!("cl.Throttle{line}")), answer, "{line}");
    }
    let long = "k".repeat(1025);
    let answer = server.say(&format!("CL.THROTTLE {long} 1 1 1"));
    assert_eq!(answer, "-Cell error: Store error: a key has at most 1024 bytes\r\n");
    assert_eq!(server.store.len(), 0, "nothing was counted");
}

#[test]
fn it_is_right_where_redis_cell_is_not() {
    let mut server = Server::new();
    // As fast as nanoseconds go, and faster.
    assert_eq!(server.ask("a 999999999 1000000000 1"), [0, 1_000_000_000, 999_999_999, -1, 1]);
    assert_eq!(server.ask("b 9 9223372036854775807 1 10"), [0, 10, 0, -1, 1]);
    // A seventh of a second is no whole number of nanoseconds, and seven of them are a second.
    assert_eq!(server.ask("c 6 7 1 7"), [0, 7, 0, -1, 1]);
    // A little more than a second is not a second.
    server.ask("d 0 1 2");
    server.clock.advance(Duration::from_nanos(999_600_000));
    assert_eq!(server.ask("d 0 1 2"), [1, 1, 0, 2, 2]);
    // The most there is.
    let most = i64::MAX;
    assert_eq!(server.ask(&format!("e {most} 1 1 0")), [0, most, most, -1, 0]);
    let [limited, _, remaining, ..] = server.ask(&format!("e {most} 1 1 1"));
    assert_eq!((limited, remaining), (0, most));
    // In lowest terms it is a window that there is.
    assert_eq!(server.ask("f 0 10000000000 10000000000"), [0, 1, 0, -1, 1]);
}

/// What `CL.THROTTLE` means, in fractions of nanoseconds that are never rounded.
#[derive(Default)]
struct Model {
    /// When the bucket will be full, as numerator and denominator.
    full_at: Option<(BigInt, BigInt)>,
}

impl Model {
    /// The answer, were the bucket full so much later than it is.
    fn answer(&self, now: u64, [burst, count, period, quantity]: [i64; 4], later: u64) -> [i64; 5] {
        // A common denominator.
        let (mut full, one) = self.full_at.clone().unwrap_or((0.into(), 1.into()));
        full += &one * later;
        let unit = &one * BigInt::from(period) * 1_000_000_000_i64;
        let (scale, now) = (&one * count, &one * count * now);
        let backlog = (full * count - &now).max(0.into());
        let depth = &unit * (BigInt::from(burst) + 1);
        let wanted = &unit * quantity;
        let is_allowed = &backlog + &wanted <= depth;
        let after = if is_allowed { &backlog + &wanted } else { backlog.clone() };
        let seconds = |time: &BigInt| -> i64 {
            let second = &scale * 1_000_000_000_i64;
            i64::try_from((time + &second - 1_i64) / &second).unwrap()
        };
        let retry = match is_allowed {
            true => -1,
            false if wanted > depth => -1,
            false => seconds(&(&backlog + &wanted - &depth)),
        };
        let room = (&depth - &after).max(0.into());
        let remaining = i64::try_from(room / &unit).unwrap();
        [i64::from(!is_allowed), burst + 1, remaining, retry, seconds(&after)]
    }

    fn take(&mut self, now: u64, [_, count, period, quantity]: [i64; 4]) {
        let (full, one) = self.full_at.clone().unwrap_or((0.into(), 1.into()));
        let start = (full * count).max(&one * count * now);
        let unit = &one * BigInt::from(period) * 1_000_000_000_i64;
        self.full_at = Some((start + unit * quantity, one * count));
    }
}

fn terms() -> impl Strategy<Value = [i64; 4]> {
    let burst = prop_oneof![0_i64..4, 5_i64..50, Just(999_999)];
    let count = prop_oneof![
        1_i64..14,
        Just(30),
        Just(90),
        Just(1000),
        Just(999_999_937),
        Just(1_000_000_000)
    ];
    let period = prop_oneof![1_i64..8, Just(60), Just(86_400)];
    let quantity = prop_oneof![4 => Just(1_i64), 2 => 0_i64..6, 1 => 0_i64..60];
    (burst, count, period, quantity)
        .prop_map(|(burst, count, period, quantity)| [burst, count, period, quantity])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// One key under ever other terms. Each change of them may round up by a nanosecond, against the caller.
    #[test]
    fn it_is_what_the_model_says(calls in vec((terms(), 0_u64..3_000_000_000), 1..40)) {
        let (mut server, mut model) = (Server::new(), Model::default());
        let mut now = 1_700_000_000_123_456_789;
        let mut later = 0;
        for (terms, pause) in calls {
            now += pause;
            server.clock.set(Timestamp::from_nanos(now));
            later += 1;
            let [burst, count, period, quantity] = terms;
            let answer = server.ask(&format!("key {burst} {count} {period} {quantity}"));
            let (exact, strict) = (model.answer(now, terms, 0), model.answer(now, terms, later));
            prop_assert!(
                answer == exact || answer == strict || is_between(answer, exact, strict),
                "{answer:?} {exact:?} {strict:?} {terms:?}"
            );
            if answer[0] == 0 {
                model.take(now, terms);
            }
        }
    }
}

/// No more generous than the one, no stricter than the other.
fn is_between(answer: [i64; 5], exact: [i64; 5], strict: [i64; 5]) -> bool {
    answer[0] == exact[0]
        && exact[0] == strict[0]
        && (strict[2]..=exact[2]).contains(&answer[2])
        && (exact[3]..=strict[3]).contains(&answer[3])
        && (exact[4]..=strict[4]).contains(&answer[4])
}
