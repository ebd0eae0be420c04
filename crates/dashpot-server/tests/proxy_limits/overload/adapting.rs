//! A capacity that finds itself: it goes down with a slow backend, and comes back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use super::{Scene, worker};
use crate::caller::PATIENCE;

/// So many ask for this, again and again, while something else is done.
fn during<T>(scene: &Scene, callers: usize, path: &str, meanwhile: impl FnOnce() -> T) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let mut caller = scene.proxy.caller();
                while !over.load(Ordering::SeqCst) {
                    let status = caller.get(path).status;
                    assert!([200, 503].contains(&status), "{status}");
                    if status == 503 {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
            });
        }
        // Also when it panics.
        let _over = Over(&over);
        meanwhile()
    })
}

#[test]
fn it_goes_down_while_the_backend_is_slow_and_comes_back() {
    let rule = worker("limit = 8, latency = '150ms', tick = '10ms', min = 5, max = 10");
    let scene = Scene::by(&rule);
    during(&scene, 8, "/slow/250", || {
        scene.await_limit("the least", |limit| limit == 5);
        thread::sleep(Duration::from_millis(300));
        assert_eq!(scene.door().limit, 5, "and no less");
    });
    during(&scene, 12, "/", || {
        scene.await_limit("the most", |limit| limit == 10);
        for _ in 0..20 {
            assert!(scene.door().limit <= 10, "{:?}", scene.door());
            thread::sleep(Duration::from_millis(10));
        }
    });
}

/// Those still at it when their time is over are slow, though nobody has heard of them.
#[test]
fn answers_that_never_come_are_slow() {
    // Ten ticks are a second: the first round is not over before all ten are in.
    let rule = "limit = 10, latency = '200ms', tick = '100ms', places = 1, wait = '20ms'";
    let scene = Scene::by(&worker(rule));
    let held: Vec<_> = (0..10).map(|_| scene.send("/never", "")).collect();
    scene.await_door(10, 0);
    until("the limit to be lower", PATIENCE, || {
        // Others come, and are turned away.
        assert_eq!(scene.get("/", "").status, 503);
        (scene.door().limit == 9).then_some(())
    });
    drop(held);
    scene.await_door(0, 0);
}

/// So are some of them that never come, while others do.
#[test]
fn some_answers_that_never_come_are_enough() {
    let scene = Scene::by(&worker("limit = 10, latency = '200ms', tick = '10ms', places = 0"));
    let _held: Vec<_> = (0..5).map(|_| scene.send("/never", "")).collect();
    scene.await_door(5, 0);
    let mut caller = scene.proxy.caller();
    until("the limit to be lower", PATIENCE, || {
        assert_eq!(caller.get("/").status, 200);
        (scene.door().limit == 9).then_some(())
    });
}

/// One round, one step: those who began before a change are not held against it.
#[test]
fn it_does_not_overreact() {
    // With places: the last of them may come when the limit is lower already.
    let rule = "limit = 20, latency = '200ms', tick = '100ms', places = 20, wait = '20s'";
    let scene = Scene::by(&worker(rule));
    let mut callers: Vec<_> = (0..20).map(|_| scene.send("/slow/500", "")).collect();
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    let mut caller = scene.proxy.caller();
    until("the limit to be lower", PATIENCE, || {
        assert_eq!(caller.get("/").status, 200);
        (scene.door().limit < 20).then_some(())
    });
    for _ in 0..30 {
        caller.get("/");
    }
    // They may have come in two rounds on a busy machine, and not in more.
    assert!(scene.door().limit >= 16, "{:?}", scene.door());
}

#[test]
fn a_limit_that_is_not_used_does_not_grow() {
    let scene = Scene::by(&worker("limit = 10, latency = '20s', tick = '10ms'"));
    let mut caller = scene.proxy.caller();
    for _ in 0..150 {
        assert_eq!(caller.get("/").status, 200);
    }
    assert_eq!(scene.door().limit, 10);
}

/// Ten times the limit, unless it is said.
#[test]
fn a_limit_that_is_used_grows_to_the_most() {
    let scene = Scene::by(&worker("limit = 1, latency = '20s', tick = '10ms', places = 50"));
    during(&scene, 14, "/slow/1", || {
        scene.await_limit("the most", |limit| limit == 10);
        thread::sleep(Duration::from_millis(200));
        assert_eq!(scene.door().limit, 10);
    });
    assert!(scene.stage.most_at_once() <= 10, "{}", scene.stage.most_at_once());
}

/// It is counted until the answer begins, and not until it ends.
#[test]
fn long_answers_are_not_slow() {
    until("answers that begin in time", PATIENCE, || {
        let scene = Scene::by(&worker("limit = 10, latency = '700ms', tick = '10ms', places = 0"));
        let mut callers = scene.begun_within(Duration::from_millis(600), 10, "/drip/1200")?;
        for caller in &mut callers {
            assert_eq!(caller.exactly(8).unwrap(), b"halfhalf");
        }
        // Used and not slow, it has grown; nobody came later who could make up for another judgement.
        assert!(scene.door().limit > 10, "{:?}", scene.door());
        Some(())
    });
}

/// Nor from when it came: those who waited at the door have not begun.
#[test]
fn to_wait_at_the_door_is_not_slow() {
    let rule = "limit = 4, latency = '700ms', tick = '10ms', places = 99, wait = '20s', max = 4";
    let in_time = Duration::from_millis(600);
    until("answers that begin in time", PATIENCE, || {
        let scene = Scene::by(&worker(rule));
        // They have answered, and hold their places.
        let mut held = scene.begun_within(in_time, 4, "/half/1")?;
        let mut waiting: Vec<_> = (0..12).map(|_| scene.send("/", "")).collect();
        scene.await_door(4, 12);
        thread::sleep(Duration::from_millis(800));
        let released = Instant::now();
        scene.stage.release("/half/1");
        for caller in &mut held {
            assert_eq!(caller.exactly(8).unwrap(), b"halfhalf");
        }
        for caller in &mut waiting {
            assert_eq!(caller.answer().status, 200);
        }
        if released.elapsed() >= in_time {
            return None;
        }
        // After ten ticks they are judged, whenever they began.
        thread::sleep(Duration::from_millis(150));
        assert_eq!(scene.door().limit, 4);
        Some(())
    });
}
