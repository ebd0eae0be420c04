//! The gate under [model checkers](crate::memory::models): nobody sleeps through room that was made, and no place is lost
//! whoever leaves, and when.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{Enter, Gate, Pass, Shed};
use crate::memory::models::{Effort, explore, together, work};
use crate::memory::sync::{AtomicU32, Ordering, yield_now};
use crate::{Class, ManualClock};

const EFFORT: Effort = Effort { interruptions: Some(2), schedules: 2_000 };

/// Rings when it is woken.
#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn gate(places: u64) -> Gate {
    Gate::builder(1).places(places).clock(ManualClock::default()).build()
}

/// Waits, and looks again only when woken.
fn wait(enter: Enter) -> Result<Pass, Shed> {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut enter = pin!(enter);
    loop {
        let rung = bell.0.load(Ordering::SeqCst);
        if let Poll::Ready(came) = enter.as_mut().poll(&mut Context::from_waker(&waker)) {
            return came;
        }
        // Time stands still: if it is never woken, this is for ever, and the checker says so.
        while bell.0.load(Ordering::SeqCst) == rung {
            yield_now();
        }
    }
}

/// Looks once, and leaves.
fn leave(mut enter: Enter) {
    let _ = Pin::new(&mut enter).poll(&mut Context::from_waker(Waker::noop()));
}

/// What must be true when all is quiet.
fn audit(gate: &Gate) {
    let status = gate.status();
    assert_eq!((status.in_flight, status.waiting), (0, 0));
    assert!(gate.try_enter(Class::Background).is_ok());
}

#[test]
fn who_waits_is_woken_by_who_leaves() {
    explore(EFFORT, || {
        let gate = gate(2);
        let pass = gate.try_enter(Class::Normal).unwrap();
        let entered = together([
            work!([] { drop(pass); true }),
            work!([gate] wait(gate.enter(Class::Normal)).is_ok()),
        ]);
        assert_eq!(entered, [true, true]);
        audit(&gate);
    });
}

#[test]
fn who_gives_up_holds_nobody_up() {
    explore(EFFORT, || {
        let gate = gate(3);
        let pass = gate.try_enter(Class::Normal).unwrap();
        let entered = together([
            work!([] { drop(pass); true }),
            work!([gate] { leave(gate.enter(Class::Critical)); true }),
            work!([gate] wait(gate.enter(Class::Normal)).is_ok()),
        ]);
        assert_eq!(entered, [true, true, true]);
        audit(&gate);
    });
}

/// One place in line, and two who want it: the less important gets in first, or is sent away; nothing else.
#[test]
fn who_is_displaced_hears_of_it() {
    explore(EFFORT, || {
        let gate = gate(1);
        let pass = gate.try_enter(Class::Normal).unwrap();
        let entered = together([
            work!([] { drop(pass); Ok(()) }),
            work!([gate] wait(gate.enter(Class::Background)).map(drop)),
            work!([gate] wait(gate.enter(Class::Critical)).map(drop)),
        ]);
        assert_eq!(entered[2], Ok(()));
        assert!(matches!(entered[1], Ok(()) | Err(Shed::Displaced | Shed::Full)));
        audit(&gate);
    });
}

/// More room than one: who enters wakes the next.
#[test]
fn room_for_two_lets_two_in() {
    explore(EFFORT, || {
        let gate = gate(2);
        let pass = gate.try_enter(Class::Normal).unwrap();
        let entered = together([
            work!([gate] { gate.adjust(Gate::builder(3).places(2)); Ok(()) }),
            work!([gate] wait(gate.enter(Class::Normal)).map(std::mem::forget)),
            work!([gate] wait(gate.enter(Class::Background)).map(std::mem::forget)),
        ]);
        assert_eq!(entered, [Ok(()); 3]);
        drop(pass);
        assert_eq!(gate.status().in_flight, 2);
    });
}
