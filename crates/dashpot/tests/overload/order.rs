//! Who comes in, who waits and who is turned away, one case at a time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dashpot::{Class, Enter, Gate, GateBuilder, ManualClock, Pass, Percent, Shed};

const WAIT: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);

fn gate(gate: GateBuilder) -> (Gate, ManualClock) {
    let clock = ManualClock::default();
    (gate.wait(WAIT).clock(clock.clone()).build(), clock)
}

/// Somebody who has looked, and waits.
fn waiting(gate: &Gate, class: Class) -> Pin<Box<Enter>> {
    let mut enter = Box::pin(gate.enter(class));
    assert!(look(&mut enter).is_none());
    enter
}

fn look(enter: &mut Pin<Box<Enter>>) -> Option<Result<Pass, Shed>> {
    match enter.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

fn shed(enter: &mut Pin<Box<Enter>>) -> Option<Shed> {
    look(enter).map(|turn| turn.expect_err("they are turned away"))
}

#[test]
fn critical_then_normal_then_background() {
    let (gate, _) = gate(Gate::builder(1).places(6));
    let mut inside = gate.try_enter(Class::Normal).unwrap();
    let classes = [Class::Background, Class::Normal, Class::Critical];
    let mut line: Vec<_> = classes.iter().chain(&classes).map(|it| waiting(&gate, *it)).collect();
    let mut order = Vec::new();
    for _ in 0..line.len() {
        drop(inside);
        let served = line.iter_mut().enumerate();
        let mut served =
            served.filter(|(who, _)| !order.contains(who)).filter_map(|(who, enter)| {
                look(enter).map(|turn| (who, turn.expect("they waited for it")))
            });
        let (who, pass) = served.next().expect("there is room for one");
        assert!(served.next().is_none());
        order.push(who);
        inside = pass;
    }
    assert_eq!(order, [2, 5, 1, 4, 0, 3]);
}

/// There is room, and somebody waits for it who has not looked yet: who comes now does not take it, unless they are more important.
#[test]
fn nobody_jumps_the_queue() {
    let (gate, _) = gate(Gate::builder(1).places(2));
    let inside = gate.try_enter(Class::Normal).unwrap();
    let mut first = waiting(&gate, Class::Normal);
    drop(inside);
    assert_eq!(gate.try_enter(Class::Background).err(), Some(Shed::Full));
    assert_eq!(gate.try_enter(Class::Normal).err(), Some(Shed::Full));
    assert!(look(&mut Box::pin(gate.enter(Class::Normal))).is_none());
    assert!(gate.try_enter(Class::Critical).is_ok());
    assert!(look(&mut first).unwrap().is_ok());
}

#[test]
fn a_wait_ends_to_the_nanosecond() {
    let (gate, clock) = gate(Gate::builder(1));
    let _inside = gate.try_enter(Class::Normal).unwrap();
    let mut late = waiting(&gate, Class::Critical);
    clock.advance(WAIT - NANO);
    assert!(look(&mut late).is_none());
    assert_eq!(gate.status().waiting, 1);
    clock.advance(NANO);
    assert_eq!(shed(&mut late), Some(Shed::TooLate));
    assert_eq!(gate.status().waiting, 0);
}

/// It is counted from the call, and not from the first look.
#[test]
fn a_wait_begins_with_the_call() {
    let (gate, clock) = gate(Gate::builder(1));
    let _inside = gate.try_enter(Class::Normal).unwrap();
    let mut late = Box::pin(gate.enter(Class::Normal));
    clock.advance(WAIT - NANO);
    assert!(look(&mut late).is_none());
    clock.advance(NANO);
    assert_eq!(shed(&mut late), Some(Shed::TooLate));
}

#[test]
fn the_newest_of_the_lowest_class_makes_room() {
    let (gate, _) = gate(Gate::builder(1).places(4));
    let _inside = gate.try_enter(Class::Normal).unwrap();
    let classes = [Class::Background, Class::Background, Class::Normal, Class::Normal];
    let mut line = classes.map(|class| waiting(&gate, class));
    for displaced in [1, 0, 3, 2] {
        let _critical = std::mem::ManuallyDrop::new(waiting(&gate, Class::Critical));
        assert_eq!(shed(&mut line[displaced]), Some(Shed::Displaced), "{displaced}");
        assert_eq!(gate.status().waiting, 4);
    }
    for class in Class::ALL {
        assert!(gate.is_closed_to(class));
        assert_eq!(shed(&mut Box::pin(gate.enter(class))), Some(Shed::Full));
    }
}

/// Somebody who looks for the first time when their time is over is turned away, and not somebody else with them.
#[test]
fn who_comes_too_late_takes_nobodys_place() {
    let (gate, clock) = gate(Gate::builder(1).places(1));
    let _inside = gate.try_enter(Class::Normal).unwrap();
    let mut late = Box::pin(gate.enter(Class::Critical));
    clock.advance(WAIT);
    let mut patient = waiting(&gate, Class::Background);
    assert_eq!(shed(&mut late), Some(Shed::TooLate));
    assert_eq!(gate.status().waiting, 1);
    assert!(look(&mut patient).is_none(), "there was a place for them");
}

#[test]
fn without_places_nobody_waits() {
    let (gate, _) = gate(Gate::builder(1).places(0));
    let _inside = gate.try_enter(Class::Background).unwrap();
    assert_eq!(shed(&mut Box::pin(gate.enter(Class::Critical))), Some(Shed::Full));
    assert!(gate.is_closed_to(Class::Critical));
}

/// All count together: what is left to those above is left to them, whoever is in.
#[test]
fn a_class_fills_its_part() {
    let parts = Gate::builder(10).places(0);
    let parts =
        parts.part(Class::Normal, Percent::new(80)).part(Class::Background, Percent::new(50));
    let (gate, _) = gate(parts);
    let mut inside = Vec::new();
    for (class, most) in [(Class::Background, 5), (Class::Normal, 8), (Class::Critical, 10)] {
        while let Ok(pass) = gate.try_enter(class) {
            inside.push(pass);
        }
        assert_eq!(inside.len(), most, "{class}");
    }
    inside.truncate(8);
    assert!(gate.try_enter(Class::Normal).is_err());
    inside.truncate(5);
    assert!(gate.try_enter(Class::Background).is_err());
    assert!(gate.try_enter(Class::Normal).is_ok());
}

/// Who is never turned away is in all the same: others wait for them.
#[test]
fn who_enters_anyway_takes_up_room() {
    let (gate, _) = gate(Gate::builder(2));
    let anyway = [(); 3].map(|()| gate.enter_anyway());
    assert_eq!(gate.status().in_flight, 3);
    let mut next = waiting(&gate, Class::Critical);
    let mut anyway = anyway.into_iter();
    drop(anyway.next());
    assert!(look(&mut next).is_none());
    drop(anyway.next());
    assert!(look(&mut next).is_some_and(|turn| turn.is_ok()));
}

/// A limit that was raised is used at once, in order.
#[test]
fn other_settings_are_for_those_who_wait_too() {
    let (gate, clock) = gate(Gate::builder(1).places(3));
    let _inside = gate.try_enter(Class::Normal).unwrap();
    let classes = [Class::Critical, Class::Background, Class::Normal];
    let [mut critical, mut background, mut normal] = classes.map(|class| waiting(&gate, class));
    gate.adjust(Gate::builder(3).places(3).wait(WAIT).clock(clock.clone()));
    let inside = [&mut critical, &mut normal].map(|enter| look(enter).unwrap().unwrap());
    assert!(look(&mut background).is_none());
    drop(inside);
    assert!(look(&mut background).unwrap().is_ok());
}

/// Somebody whose turn it is, and who does not look: when their time is over others need not wait for them.
#[test]
fn who_never_looks_holds_up_nobody_for_longer_than_they_may_wait() {
    let (gate, clock) = gate(Gate::builder(2));
    let inside = [(); 2].map(|()| gate.try_enter(Class::Normal).unwrap());
    let _asleep = waiting(&gate, Class::Critical);
    drop(inside);
    clock.advance(WAIT);
    assert!(gate.try_enter(Class::Normal).is_ok(), "{:?}", gate.status());
    assert_eq!(gate.status().waiting, 0);
}
