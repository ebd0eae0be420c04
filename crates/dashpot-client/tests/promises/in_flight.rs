//! What is on its way, what is kept, and answers that overtake each other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use dashpot::{Clock, Percent, Quota};
use dashpot_client::{BoxError, Manners, Polite, Replay};
use http::{Request, Response};
use http_body_util::Full;
use proptest::collection::vec;
use proptest::prelude::*;
use tower::ServiceExt;
use tower_service::Service;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, World, WorldClock, answer, get, millis, secs};

/// A server with so many for each window, whose answers overtake each other.
#[derive(Clone)]
struct Far {
    clock: WorldClock,
    limit: u64,
    window: u64,
    /// How long calls take to arrive, and answers to come back, over and over.
    ways: Arc<Vec<(u64, u64)>>,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Default)]
struct Counted {
    calls: usize,
    window: u64,
    used: u64,
    let_in: usize,
    denied: usize,
}

impl Service<Request<Replay<Full<Bytes>>>> for Far {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Replay<Full<Bytes>>>) -> Self::Future {
        let far = self.clone();
        let (there, back) = {
            let mut counted = far.counted.lock().unwrap();
            counted.calls += 1;
            far.ways[counted.calls % far.ways.len()]
        };
        Box::pin(async move {
            far.clock.sleep(millis(there)).await;
            let response = {
                let mut counted = far.counted.lock().unwrap();
                let now = far.clock.now().as_nanos() / 1_000_000;
                if now / far.window != counted.window {
                    (counted.window, counted.used) = (now / far.window, 0);
                }
                let is_in = counted.used < far.limit;
                counted.used += u64::from(is_in);
                match is_in {
                    true => counted.let_in += 1,
                    false => counted.denied += 1,
                }
                let reset = ((counted.window + 1) * far.window).to_string();
                let left = (far.limit - counted.used).to_string();
                let limit = far.limit.to_string();
                let headers = [
                    ("x-ratelimit-limit", limit.as_str()),
                    ("x-ratelimit-remaining", left.as_str()),
                    ("x-ratelimit-reset", reset.as_str()),
                ];
                answer(if is_in { 200 } else { 429 }, &headers)
            };
            far.clock.sleep(millis(back)).await;
            response
        })
    }
}

proptest! {
    #![proptest_config(super::cases(64))]

    #[test]
    fn answers_that_overtake_each_other_do_not_make_more_of_a_quota_than_there_is(
        ways in vec((0..1500_u64, 0..1500_u64), 1..20),
        limit in 3..40_u64,
        many in 1..80_usize,
        seed in any::<u64>(),
    ) {
        let mut world = World::new();
        let counted = Arc::<Mutex<Counted>>::default();
        let window = 20_000;
        let far = Far {
            clock: world.clock.clone(), limit, window, ways: Arc::new(ways), counted: counted.clone(),
        };
        let manners = Manners::builder()
            .clock(world.clock.clone())
            .seed(seed)
            .patience(secs(10_000))
            .retry_floor(Quota::per_second(1000))
            .build();
        let polite = Polite::new(far, manners);
        world.wait_for(polite.clone().oneshot(get(HERE))).unwrap();
        for _ in 0..many {
            let polite = polite.clone();
            world.spawn(async move {
                polite.oneshot(get(HERE)).await.unwrap();
            });
        }
        world.run();
        let counted = counted.lock().unwrap();
        prop_assert_eq!(counted.denied, 0, "of {}", counted.let_in);
        // And no slower than it has to be: each window is used up, but for the last.
        let windows = (many as u64 + 1).div_ceil(limit) + 1;
        let most = millis(windows * window) + secs(2 * windows);
        prop_assert!(world.time() <= most, "{:?} of {:?}", world.time(), most);
    }
}

/// Calls one after the other and keeps all answers, unread.
fn keep_all(scene: &mut Scene, many: usize) {
    let client = scene.client();
    scene.world.wait_for(async move {
        let mut kept = Vec::new();
        for _ in 0..many {
            kept.push(client.clone().oneshot(get(HERE)).await.unwrap());
        }
    });
}

fn page(status: u16, headers: &[(&str, &str)]) -> Answer {
    let mut response = answer(status, headers)?;
    *response.body_mut() = Full::from("a page");
    Ok(response)
}

#[test]
fn answers_that_are_kept_unread_do_not_count_against_the_servers_quota() {
    let handler = |arrival: &Arrival| {
        let left = 100_usize.saturating_sub(arrival.number + 1).to_string();
        page(
            200,
            &[
                ("x-ratelimit-limit", "100"),
                ("x-ratelimit-remaining", &left),
                ("x-ratelimit-reset", "1000"),
            ],
        )
    };
    let mut scene = Scene::new(handler, |builder| builder.thrift(Percent::new(0), secs(0)));
    keep_all(&mut scene, 100);
    // Their answers said what is left, and they were counted in it.
    assert_eq!(scene.times(), vec![secs(0); 100]);
}

#[test]
fn who_keeps_answers_unread_does_not_wait_for_itself_after_a_denial() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => page(429, &[("retry-after", "2")]),
        _ => page(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder);
    keep_all(&mut scene, 10);
    assert!(scene.world.time() <= secs(3), "{:?}", scene.times());
    assert_eq!(scene.times().len(), 11);
}

#[test]
fn who_keeps_the_answer_of_the_one_that_went_to_see_does_not_wait_for_itself() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => page(200, &[("ratelimit", "\"a\";r=0;t=10"), ("ratelimit-policy", "\"a\";q=9;w=10")]),
        _ => page(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| builder);
    keep_all(&mut scene, 5);
    assert!(scene.world.time() <= secs(12), "{:?}", scene.times());
}

#[test]
fn who_was_dropped_on_its_way_has_used_what_was_left() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(
            200,
            &[("ratelimit", "\"a\";r=5;t=100"), ("ratelimit-policy", "\"a\";q=9;w=100")],
        ),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| {
        builder.patience(secs(1000)).thrift(Percent::new(0), secs(0))
    })
    .way(secs(1));
    scene.ask(get(HERE));
    let lost = scene.calls(5);
    scene.world.run_until(millis(3500));
    // They have arrived, and nobody waits for their answers.
    assert_eq!(scene.times().len(), 6);
    lost.into_iter().for_each(|call| scene.world.drop_task(call));
    let calls = scene.calls(5);
    scene.world.run_until(secs(90));
    assert_eq!(scene.times().len(), 6, "the server has counted those that were dropped");
    scene.world.run();
    assert!(calls.iter().all(|call| scene.of(*call).status == Some(200)));
}

#[test]
fn who_failed_on_its_way_may_have_used_what_was_left() {
    let handler = |arrival: &Arrival| match arrival.number {
        0 => {
            answer(200, &[("ratelimit", "\"a\";r=3;t=50"), ("ratelimit-policy", "\"a\";q=9;w=50")])
        }
        1..4 => Err("no answer".into()),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| {
        builder.patience(secs(1000)).thrift(Percent::new(0), secs(0)).attempts(1)
    });
    scene.ask(get(HERE));
    for _ in 0..3 {
        assert!(scene.ask(get(HERE)).error.is_some());
    }
    let over = scene.ask(get(HERE)).over;
    assert!(over >= secs(50), "{over:?}");
}

#[test]
fn what_was_used_since_is_not_there_again_at_a_reset_that_was_told_before() {
    // One of a hundred is missing and will be there in 100 ms: ten each second, then.
    let handler = |arrival: &Arrival| match arrival.number {
        0 => answer(
            200,
            &[
                ("x-ratelimit-limit-requests", "100"),
                ("x-ratelimit-remaining-requests", "99"),
                ("x-ratelimit-reset-requests", "100ms"),
            ],
        ),
        _ => answer(200, &[]),
    };
    let mut scene = Scene::new(handler, |builder| {
        builder.patience(secs(1000)).thrift(Percent::new(0), secs(0))
    });
    scene.ask(get(HERE));
    // All others take long to be answered.
    scene.server.way = secs(20);
    scene.calls(60);
    scene.world.run_until(millis(500));
    scene.calls(100);
    scene.world.run_until(millis(20_500));
    let second = scene.times().len() - 61;
    // 39 were left, and half a second brings five.
    assert!(second <= 45, "{second} went at once");
    assert!(second >= 35, "only {second} went at once");
}
