//! Queues: who waits in line is served in its turn. Time passes when nothing else happens.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use http::{Request, Response};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::common::{limit, rules, store};

type Served = Arc<Mutex<Vec<(u64, u64)>>>;
type Limited = tower::util::BoxCloneService<Request<Body>, Response<()>, Infallible>;

/// A service that notes which request came when, in whole seconds, and says only the status.
fn limited(text: &str) -> (Limited, Served) {
    let served = Served::default();
    let notes = served.clone();
    let start = Instant::now();
    let inner = service_fn(move |request: Request<Body>| {
        let number = request.uri().path()[1..].parse().unwrap();
        notes.lock().unwrap().push((number, start.elapsed().as_secs()));
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let layer = limit(rules(text), store().0);
    let service = layer.layer(inner).map_response(|response| response.map(drop));
    (service.boxed_clone(), served)
}

fn request(number: u64) -> Request<Body> {
    Request::get(format!("/{number}")).body(Body::empty()).unwrap()
}

/// Starts so many at once, in order, and says which statuses they got.
async fn at_once(service: &Limited, count: u64) -> Vec<u16> {
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let future = service.clone().ready_oneshot().await.unwrap().call(request(number));
        tasks.spawn(async move { (number, future.await.unwrap().status().as_u16()) });
    }
    let mut statuses = tasks.join_all().await;
    statuses.sort_unstable();
    statuses.into_iter().map(|(_, status)| status).collect()
}

#[tokio::test(start_paused = true)]
async fn a_queue_lets_one_leave_at_a_time() {
    let text = "[[rule]]\nname = 'q'\nlimits = ['1/s']\nalgorithm = 'leaky-bucket'\nqueue = 3";
    let (service, served) = limited(text);
    assert_eq!(at_once(&service, 6).await, [200, 200, 200, 200, 429, 429]);
    // First come, first served, a second apart.
    assert_eq!(*served.lock().unwrap(), [(0, 0), (1, 1), (2, 2), (3, 3)]);
}

#[tokio::test(start_paused = true)]
async fn some_may_go_ahead_undelayed() {
    let text = "[[rule]]\nname = 'q'\nlimits = ['1/s']\nalgorithm = 'leaky-bucket'\nqueue = 4\nundelayed = 2";
    let (service, served) = limited(text);
    assert_eq!(at_once(&service, 6).await, [200, 200, 200, 200, 200, 429]);
    // As nginx's `delay=2`: three at once, then one a second.
    assert_eq!(*served.lock().unwrap(), [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)]);
}

/// Several rules: all must pass, and the longest delay counts.
#[tokio::test(start_paused = true)]
async fn the_longest_queue_counts() {
    let queue = |name: &str, limit: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nlimits = ['{limit}']\nalgorithm = 'leaky-bucket'\nqueue = 2\n"
        )
    };
    let (service, served) = limited(&(queue("fast", "1/s") + &queue("slow", "1/10s")));
    assert_eq!(at_once(&service, 3).await, [200, 200, 200]);
    assert_eq!(*served.lock().unwrap(), [(0, 0), (1, 10), (2, 20)]);
}

/// Without places nobody waits.
#[tokio::test(start_paused = true)]
async fn a_bucket_without_a_queue_denies_at_once() {
    let text = "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'";
    let (service, served) = limited(text);
    assert_eq!(at_once(&service, 3).await, [200, 200, 429]);
    assert!(served.lock().unwrap().iter().all(|(_, second)| *second == 0));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_is_not_served() {
    let text = "[[rule]]\nname = 'q'\nlimits = ['1/s']\nalgorithm = 'leaky-bucket'\nqueue = 3";
    let (service, served) = limited(text);
    let mut waiting = JoinSet::new();
    for number in 0..3 {
        let mut service = service.clone();
        waiting.spawn(async move {
            let waiting = service.call(request(number));
            tokio::time::timeout(Duration::from_millis(1500), waiting).await.is_ok()
        });
    }
    let served_in_time = waiting.join_all().await.into_iter().filter(|served| *served).count();
    assert_eq!(served_in_time, 2);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(served.lock().unwrap().len(), 2);
}

/// A permit that was taken with a place in the queue is given back by those who leave it.
#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_gives_its_permit_back() {
    let text = "
        [[rule]]
        name = 'q'
        limits = ['1/h']
        algorithm = 'leaky-bucket'
        queue = 9
        [[rule]]
        name = 'slots'
        limits = ['1 concurrent']
        algorithm = 'concurrency'
    ";
    let (mut service, _) = limited(text);
    assert_eq!(service.call(request(0)).await.unwrap().status(), 200);
    for number in 1..4 {
        let waiting = tokio::time::timeout(Duration::from_secs(1), service.call(request(number)));
        assert!(waiting.await.is_err(), "{number} should wait, not be denied");
    }
}
