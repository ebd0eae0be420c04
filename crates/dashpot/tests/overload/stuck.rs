//! When those who are in stay, because they are stuck or because what they are sent is long.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use dashpot::{Class, Pass};

use crate::rounds::{LATENCY, MILLI, SOON, Script, TICK, answered};

/// Those who are stuck are slow when they have had their time, and not when they are done.
#[test]
fn who_is_stuck_is_slow() {
    let script = Script::adaptive(100);
    let stuck = script.begin(20);
    answered(script.begin(70));
    script.clock.advance(TICK);
    script.touch();
    script.clock.advance(LATENCY - MILLI);
    script.touch();
    assert_eq!(script.limit(), 100);
    script.clock.advance(2 * MILLI);
    script.touch();
    assert_eq!(script.limit(), 90);
    // And it is told once.
    for round in 1..=10 {
        script.clock.advance(TICK);
        assert_eq!(script.round(60, 0, 0), 90 + round);
    }
    answered(stuck);
    script.clock.advance(TICK);
    script.touch();
    assert!(script.limit() >= 100);
}

/// When all are stuck nobody comes or goes. How it stands is told all the same: 18 may be in by then.
#[test]
fn a_gate_at_which_nothing_moves_tells_its_limit() {
    let script = Script::adaptive(20);
    let stuck = script.begin(20);
    for _ in 0..100 {
        script.clock.advance(TICK);
        assert!(script.gate.try_enter(Class::Normal).is_err());
    }
    assert_eq!(script.limit(), 18);
    drop(stuck);
}

/// Everybody was answered in time, and what they are sent goes on for long. That is no reason to keep others out: there is room for one more
/// after each round.
#[test]
fn long_answers_do_not_hold_up_the_rounds() {
    let script = Script::adaptive(20);
    let mut sending = script.begin(20);
    script.clock.advance(SOON);
    sending.iter_mut().for_each(Pass::succeeded);
    script.clock.advance(TICK);
    assert!(script.gate.try_enter(Class::Normal).is_ok(), "{:?}", script.gate.status());
}

/// The same for who waits: somebody who asks every 10 ms for a second.
#[test]
fn long_answers_do_not_hold_up_those_who_wait() {
    let script = Script::adaptive(20);
    let mut sending = script.begin(20);
    script.clock.advance(SOON);
    sending.iter_mut().for_each(Pass::succeeded);
    let mut waiting = pin!(script.gate.enter(Class::Normal));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match waiting.as_mut().poll(&mut context) {
            Poll::Ready(turn) => {
                break assert!(turn.is_ok(), "{turn:?}, {:?}", script.gate.status());
            }
            Poll::Pending => script.clock.advance(TICK / 10),
        }
    }
}
