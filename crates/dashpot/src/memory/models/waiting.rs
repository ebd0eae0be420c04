//! Those who wait: nobody sleeps through what is given back.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::{Effort, Scene, by, explore, together, work};
use crate::memory::sync::{AtomicU32, Ordering, yield_now};
use crate::{Algorithm, Check, Cost, Policy};

const EFFORT: Effort = Effort { interruptions: Some(1), schedules: 1_000 };
const LONG: Duration = Duration::from_secs(60);

/// Rings when it is woken.
#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits for a unit, and looks again only when woken.
fn wait(scene: &Scene, policy: &Policy) -> bool {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut context = Context::from_waker(&waker);
    let mut ready = pin!(scene.store.until_ready(Check::new(policy, "k"), LONG));
    loop {
        let rung = bell.0.load(Ordering::SeqCst);
        if let Poll::Ready(decision) = ready.as_mut().poll(&mut context) {
            return decision.is_ok_and(|decision| decision.is_allowed());
        }
        // Time stands still: if it is never woken, this is for ever, and the checker says so.
        while bell.0.load(Ordering::SeqCst) == rung {
            yield_now();
        }
    }
}

/// Looks once, and leaves, with nothing.
fn leave(scene: &Scene, policy: &Policy) {
    let mut context = Context::from_waker(Waker::noop());
    let check = Check::new(policy, "k");
    let ready = pin!(scene.store.until_ready(check, LONG));
    if let Poll::Ready(Ok(decision)) = ready.poll(&mut context) {
        scene.store.settle_now(&check.reservation(&decision).unwrap(), Cost::new(0));
    }
}

/// A limit of one, which is taken, and what gives it back.
fn taken(scene: &Arc<Scene>, policy: &Policy) -> impl FnOnce() + Send + 'static {
    let check = Check::new(policy, "k");
    let reservation = check.reservation(&scene.store.decide_now(&[check])).unwrap();
    let scene = scene.clone();
    move || {
        scene.store.settle_now(&reservation, Cost::new(0));
    }
}

#[test]
fn who_waits_is_woken_by_what_is_given_back() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), by(Algorithm::Concurrency, "p", 1));
        let give_back = taken(&scene, &policy);
        let taken = together([
            work!([] { give_back(); true }),
            work!([scene, policy] wait(&scene, &policy)),
        ]);
        assert_eq!(taken, [true, true]);
        assert_eq!(scene.used(&policy, "k"), 1);
        scene.audit();
    });
}

/// Whoever leaves the line passes on what he was woken for.
#[test]
fn who_leaves_holds_nobody_up() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), by(Algorithm::Concurrency, "p", 1));
        let give_back = taken(&scene, &policy);
        let taken = together([
            work!([] { give_back(); true }),
            work!([scene, policy] { leave(&scene, &policy); true }),
            work!([scene, policy] wait(&scene, &policy)),
        ]);
        assert_eq!(taken, [true, true, true]);
        assert_eq!(scene.used(&policy, "k"), 1);
        assert!(scene.store.room.is_empty());
    });
}
