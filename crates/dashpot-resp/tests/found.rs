//! Numbers that are fine one by one and too large together.

use dashpot::{Check, MemoryStore};
use dashpot_resp::{Limits, Next, Reader, Session, Surroundings};

struct Open;
impl Surroundings for Open {}

fn ask(store: &MemoryStore, command: &str) -> String {
    let (mut session, mut out) = (Session::new(1, &Open), Vec::new());
    let mut reader = Reader::default();
    let line = format!("{command}\r\n");
    let (request, _) = reader.read(line.as_bytes(), Limits::KNOWN).unwrap().unwrap();
    let Next::Throttle(asked) = session.answer(request, &Open, &mut out) else {
        panic!("{}", String::from_utf8_lossy(&out))
    };
    let policy = asked.terms.policy("(throttle)").unwrap();
    let decision = store.decide_now(&[Check::new(&policy, asked.key).cost(asked.quantity)]);
    asked.answer(&decision, &mut out);
    String::from_utf8(out).unwrap()
}

/// The period is short in lowest terms, so that it is let in; what the bucket holds in all does not fit into 128 bits unless they
/// are what is multiplied.
#[test]
fn who_looks_with_large_numbers_is_not_limited() {
    let store = MemoryStore::new();
    let (most, half) = (i64::MAX, 1_i64 << 62);
    let taken = ask(&store, &format!("CL.THROTTLE k {most} {half} {half} 1"));
    assert!(taken.starts_with("*5\r\n:0\r\n"), "{taken:?}");
    let looked = ask(&store, &format!("CL.THROTTLE k {most} {half} {half} 0"));
    assert!(looked.starts_with("*5\r\n:0\r\n"), "nearly all of it remains: {looked:?}");
    let looked = ask(&store, &format!("CL.THROTTLE k {most} {most} {most} 0"));
    assert!(looked.starts_with("*5\r\n:0\r\n"), "nearly all of it remains: {looked:?}");
}
