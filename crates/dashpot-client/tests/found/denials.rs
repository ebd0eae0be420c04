//! Who was turned away, and what others made of it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use bytes::Bytes;
use dashpot_client::{Manners, Polite, Replay};
use http::Request;
use http_body_util::Full;
use tower::{ServiceExt, service_fn};
use tower_service::Service;

use crate::common::{Server, World, answer, get, millis, secs};
use crate::promises::{HERE, Scene};

/// `Retry-After` was not looked at if only `should-retry` made another attempt worth it.
#[test]
fn who_is_asked_to_come_again_comes_when_it_is_asked_to() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(409, &[("stripe-should-retry", "true"), ("retry-after", "10")]),
            _ => answer(200, &[]),
        },
        |builder| builder,
    );
    scene.ask(get(HERE));
    assert!(scene.times()[1] >= secs(10), "{:?}", scene.times());
}

/// One who was turned away made all others wait for those who were on their way before.
#[test]
fn those_sent_before_a_denial_are_not_waited_for() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            9 => answer(429, &[("retry-after", "1")]),
            _ => answer(200, &[]),
        },
        |builder| builder,
    )
    .work(|arrival| if arrival.number < 9 { secs(50) } else { millis(100) });
    scene.calls(10);
    scene.world.run();
    assert!(scene.times()[10] < secs(3), "{:?}", scene.times());
}

/// Ten who were sent and turned away in one instant counted as ten denials in a row.
#[test]
fn those_turned_away_together_are_one_denial() {
    let mut world = World::new();
    let server = Server::new(&world.clock, |arrival| match arrival.number {
        0..10 => answer(429, &[("retry-after", "1")]),
        _ => answer(200, &[]),
    });
    let arrives = server.clone();
    // Others come first, and no time passes.
    let later = service_fn(move |request: Request<Replay<Full<Bytes>>>| {
        let mut server = arrives.clone();
        async move {
            tokio::task::yield_now().await;
            server.call(request).await
        }
    });
    let polite = Polite::new(later, Manners::builder().clock(world.clock.clone()).build());
    for _ in 0..10 {
        let polite = polite.clone();
        world.spawn(async move {
            polite.oneshot(get(HERE)).await.unwrap();
        });
    }
    world.run();
    let times = server.times(world.at(secs(0)));
    assert_eq!(times[..10], [secs(0); 10]);
    assert!(times[10] >= secs(1) && times[10] <= millis(1500), "{times:?}");
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Polls where it is woken: what another thread may do at any moment.
struct Eager {
    task: Mutex<Option<Task>>,
}

impl Wake for Eager {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let Ok(mut task) = self.task.try_lock() else { return };
        if let Some(running) = task.as_mut()
            && running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *task = None;
        }
    }
}

/// Between taking in an answer and the hold that it told, somebody could go.
#[test]
fn nobody_goes_between_a_denial_and_its_hold() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 | 1 => answer(429, &[("retry-after", "60")]),
            _ => answer(200, &[]),
        },
        |builder| builder.patience(secs(300)),
    )
    .way(millis(50));
    scene.call(get(HERE));
    scene.world.run_until(secs(30));
    let client = scene.client();
    let task: Task = Box::pin(async move {
        client.oneshot(get(HERE)).await.unwrap();
    });
    let eager = Arc::new(Eager { task: Mutex::new(Some(task)) });
    Waker::from(eager).wake();
    scene.world.run_until(secs(290));
    // The second goes to see, and is turned away for another minute.
    let times = scene.times();
    assert!(times.len() == 4 && times[2] - times[1] >= secs(60), "{times:?}");
}

/// One who was turned away long after those sent with it, without being told for how long, came again at once.
#[test]
fn who_is_turned_away_late_waits_as_well() {
    for seed in 0..20 {
        let mut scene = Scene::new(
            |arrival| answer(if arrival.number < 2 { 429 } else { 200 }, &[]),
            |builder| builder.seed(seed).backoff(secs(8), secs(8)),
        )
        .work(|arrival| if arrival.number == 0 { secs(50) } else { secs(0) });
        scene.calls(2);
        scene.world.run();
        assert_eq!(scene.paths()[3], "0");
        assert!(scene.times()[3] > secs(50), "{:?}", scene.times());
    }
}
