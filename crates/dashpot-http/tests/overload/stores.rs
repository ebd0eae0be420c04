//! Stores that take their time, or do not answer: a door holds, and what was taken comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashpot::{
    Check, Cost, Decision, Key, KeyOperation, ManualClock, MemoryStore, Policy, Reservation, Store,
    StoreError, Timestamp,
};
use tokio::sync::Semaphore;

use super::{Answer, SECOND, Scene, get, settle};

/// A store far away, whose answers come when they are let through.
struct Far {
    inner: Arc<MemoryStore>,
    answers: Semaphore,
    settlements: Semaphore,
    is_down: AtomicBool,
    settled: AtomicU64,
}

impl Far {
    fn is_up(&self) -> Result<(), StoreError> {
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down { Err(StoreError::Unavailable("down".into())) } else { Ok(()) }
    }

    async fn settles(&self) -> Result<(), StoreError> {
        self.is_up()?;
        self.settlements.acquire().await.unwrap().forget();
        self.settled.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn answer(&self, count: usize) {
        self.answers.add_permits(count);
        settle().await;
    }

    async fn settle_some(&self, count: usize) {
        self.settlements.add_permits(count);
        settle().await;
    }
}

impl Store for Far {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        self.is_up()?;
        self.answers.acquire().await.unwrap().forget();
        self.inner.decide(checks).await
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        self.settles().await?;
        self.inner.settle(reservation, used).await
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        self.settles().await?;
        self.inner.undo(reservation).await
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        self.inner.manage(policy, key, operation).await
    }
}

const RULES: &str = "
[[rule]]
name = 'api'
limits = '10/h'
algorithm = 'fixed-window'
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 1, wait = '10s' }
";

fn far(text: &str) -> (Scene, Arc<Far>) {
    let clock = ManualClock::default();
    let inner = Arc::new(MemoryStore::with_clock(clock.clone()));
    let store = Arc::new(Far {
        inner: inner.clone(),
        answers: Semaphore::new(0),
        settlements: Semaphore::new(0),
        is_down: AtomicBool::new(false),
        settled: AtomicU64::new(0),
    });
    (Scene::on(text, clock, inner, store.clone()), store)
}

/// There was room when it was asked, and none when the answer came.
#[tokio::test]
async fn the_door_closes_while_the_store_is_asked() {
    let (scene, store) = far(RULES);
    let all = [scene.hold("/").await, scene.hold("/").await, scene.hold("/").await];
    assert_eq!(
        (scene.called(), scene.inside()),
        (0, (0, 0)),
        "nobody is in while the store is asked"
    );
    store.answer(3).await;
    assert_eq!((scene.called(), scene.inside()), (1, (1, 1)));
    store.settle_some(5).await;
    let [first, second, third] = all;
    Answer::of(third).await.assert_shed();
    assert_eq!(scene.left("/").await, 8);
    scene.go(2).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(second).await.status, 200);
    assert_eq!(store.settled.load(Ordering::Relaxed), 1, "one was given back, once");
}

#[tokio::test]
async fn who_hangs_up_while_the_store_is_asked_was_never_in() {
    let (scene, store) = far(RULES);
    let gone = scene.hold("/").await;
    gone.abort();
    settle().await;
    store.answer(1).await;
    assert_eq!((scene.called(), scene.inside()), (0, (0, 0)));
}

/// Turned away, and gone before the store has taken it back: it is given back all the same.
#[tokio::test]
async fn what_is_given_back_is_so_whoever_listens() {
    let (scene, store) = far(RULES);
    store.answer(9).await;
    let _first = scene.hold("/").await;
    let late = scene.hold("/").await;
    assert_eq!(scene.inside(), (1, 1));
    scene.advance(SECOND * 10).await;
    late.abort();
    settle().await;
    store.settle_some(9).await;
    assert_eq!((scene.left("/").await, store.settled.load(Ordering::Relaxed)), (9, 1));
}

/// A store that is gone by then keeps nobody waiting.
#[tokio::test]
async fn a_store_that_cannot_take_it_back_keeps_nobody() {
    let (scene, store) = far(RULES);
    store.answer(9).await;
    let first = scene.hold("/").await;
    let late = scene.hold("/").await;
    store.is_down.store(true, Ordering::Relaxed);
    scene.advance(SECOND * 10).await;
    Answer::of(late).await.assert_shed();
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn who_is_refused_for_lack_of_a_store_takes_no_place() {
    let (scene, store) = far(&RULES.replace("limits", "on_store_error = 'deny'\nlimits"));
    store.is_down.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(scene.get("/").await.status, 503);
        assert_eq!((scene.inside(), scene.called()), ((0, 0), 0));
    }
    assert_eq!(scene.tally("worker"), (0, 0, 0));
}

/// What was counted here meanwhile is given back here.
#[tokio::test]
async fn what_stands_in_for_the_store_gets_back_what_was_taken() {
    let (scene, store) = far(&RULES.replace("limits", "on_store_error = 'local'\nlimits"));
    store.is_down.store(true, Ordering::Relaxed);
    let first = scene.hold("/").await;
    for _ in 0..20 {
        let late = scene.hold("/").await;
        scene.get("/").await.assert_shed();
        scene.advance(SECOND * 10).await;
        Answer::of(late).await.assert_shed();
    }
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    let passed = scene.statuses("/", 12).await;
    assert_eq!(passed.iter().filter(|status| **status == 200).count(), 9, "{passed:?}");
    store.settle_some(99).await;
    assert_eq!(store.settled.load(Ordering::Relaxed), 0, "the store itself was never asked");
}

/// `allow` goes past the limits, and not past the door.
#[tokio::test]
async fn who_is_let_pass_without_a_store_is_still_in_line() {
    let (scene, store) = far(&RULES.replace("limits", "on_store_error = 'allow'\nlimits"));
    store.is_down.store(true, Ordering::Relaxed);
    let _first = scene.hold("/").await;
    let _second = scene.hold("/").await;
    assert_eq!((scene.inside(), scene.called()), ((1, 1), 1));
    scene.send(get("/", "")).await.assert_shed();
}

/// Who waits at another instance is not known here, and was told when to go: a place in a queue stays taken once its turn came.
#[tokio::test(start_paused = true)]
async fn a_place_in_a_queue_far_away_is_kept_after_its_turn() {
    let (scene, store) = far("
[[rule]]
name = 'queue'
match.path = '/queue'
limits = '1/s'
algorithm = 'leaky-bucket'
queue = 5
[[rule]]
name = 'worker'
capacity = { limit = 1, places = 0 }
");
    store.answer(9).await;
    store.settle_some(9).await;
    assert_eq!(scene.get("/queue").await.status, 200);
    let unlucky = scene.hold("/queue").await;
    let _other = scene.hold("/").await;
    tokio::time::sleep(SECOND * 2).await;
    Answer::of(unlucky).await.assert_shed();
    assert_eq!(store.settled.load(Ordering::Relaxed), 0);
}
