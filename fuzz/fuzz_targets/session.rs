#![no_main]

//! Whole conversations of a Redis client, `CL.THROTTLE` among them.

use dashpot::{Check, ManualClock, MemoryStore, Timestamp};
use dashpot_resp::{KEY_MAX, Next, Reader, Session, Surroundings};
use libfuzzer_sys::fuzz_target;
use redis_protocol::{resp2, resp3};

const PASSWORD: &[u8] = b"open sesame";

struct Around {
    is_locked: bool,
}

impl Surroundings for Around {
    fn has_password(&self) -> bool {
        self.is_locked
    }

    fn is_password(&self, said: &[u8]) -> bool {
        self.is_locked && said == PASSWORD
    }

    fn sections(&self) -> &'static [&'static str] {
        &["server"]
    }

    fn info(&self, section: &str, out: &mut String) {
        out.push_str(&format!("about:{section}\r\n"));
    }
}

fuzz_target!(|data: &[u8]| {
    for around in [Around { is_locked: false }, Around { is_locked: true }] {
        converse(data, &around);
    }
});

fn converse(data: &[u8], around: &Around) {
    let store = MemoryStore::with_clock(ManualClock::new(Timestamp::from_secs(1_700_000_000)));
    let (mut session, mut reader) = (Session::new(7, around), Reader::default());
    let mut rest = data;
    // A store remembers each of them.
    for _ in 0..64 {
        let mut out = Vec::new();
        let was_known = session.is_known();
        let (request, length) = match reader.read(rest, session.limits()) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                Session::refuse(error, &mut out);
                return assert!(out.is_empty() || is_one_answer(&out), "{out:?}");
            }
        };
        let is_nothing = request.is_empty();
        let says_it = request.arguments().any(|argument| argument == PASSWORD);
        let next = session.answer(request, around, &mut out);
        if let Next::Throttle(asked) = next {
            assert!(was_known && asked.key.as_bytes().len() <= KEY_MAX);
            match asked.terms.policy("fuzz") {
                Ok(policy) => {
                    let check = Check::new(&policy, asked.key).cost(asked.quantity);
                    asked.answer(&store.decide_now(&[check]), &mut out);
                }
                Err(wrong) => wrong.answer(&mut out),
            }
        }
        assert!(was_known || !session.is_known() || says_it, "let in without the password");
        assert_eq!(out.is_empty(), is_nothing);
        assert!(is_nothing || is_one_answer(&out), "{}", String::from_utf8_lossy(&out));
        if next == Next::End {
            return;
        }
        rest = &rest[length..];
    }
}

/// Whether clients of either version see one answer, and nothing after it.
fn is_one_answer(out: &[u8]) -> bool {
    // Errors may be any bytes, and that library wants text.
    if out.starts_with(b"-") {
        return out.ends_with(b"\r\n") && !out[..out.len() - 2].contains(&b'\n');
    }
    let is_whole = |length: usize| length == out.len();
    matches!(resp2::decode::decode(out), Ok(Some((_, length))) if is_whole(length))
        || matches!(resp3::decode::complete::decode(out), Ok(Some((_, length))) if is_whole(length))
}
