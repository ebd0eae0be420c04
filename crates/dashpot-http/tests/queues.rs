//! Queues: who waits in line is served in its turn. Time passes when nothing else happens.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use dashpot_rules::LiveRules;
use http::{Request, Response};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::common::{limit, rules, store};
use crate::queue_model::{INTERVAL, Line, pass, settle, text};

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

/// Each keeps a place in every line that is meant, closes up in each of them, and leaves when the last of them lets it.
#[tokio::test(start_paused = true)]
async fn who_stands_in_two_lines_closes_up_in_both() {
    let queue = |name: &str, limit: &str, more: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nlimits = ['{limit}']\nalgorithm = 'leaky-bucket'\n\
             queue = 9\n{more}\n"
        )
    };
    let text = queue("fast", "25/s", "") + &queue("slow", "10/s", "match = { path = '/both/*' }");
    let (served, (store, clock), start) =
        (Arc::new(Mutex::new(Vec::new())), store(), Instant::now());
    let notes = served.clone();
    let inner = service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        notes.lock().unwrap().push((path, start.elapsed().as_millis() as u64));
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(rules(&text), store).layer(inner);
    let come = |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        tokio::spawn(service.clone().oneshot(request))
    };
    let mut tasks = Vec::new();
    for path in ["/both/0", "/both/1", "/both/2", "/both/3", "/fast/4"] {
        tasks.push(come(path));
        settle().await;
    }
    for now in 0..700 {
        match now {
            10 => tasks[2].abort(),
            20 => tasks.push(come("/both/5")),
            _ => {}
        }
        settle().await;
        pass(&clock).await;
    }
    let expected =
        [("/both/0", 0), ("/both/1", 100), ("/fast/4", 120), ("/both/3", 200), ("/both/5", 300)];
    let expected = expected.map(|(path, at)| (path.to_owned(), at));
    assert_eq!(*served.lock().unwrap(), expected);
}

/// Who waits is not forgotten when the rules are read again.
#[tokio::test(start_paused = true)]
async fn who_waits_is_served_after_rules_were_replaced() {
    let (served, (store, clock)) = (Arc::new(Mutex::new(0)), store());
    let live = LiveRules::new(rules(&text(&Line { places: 9, undelayed: 0 }, 1)));
    let count = served.clone();
    let inner = service_fn(move |_: Request<Body>| {
        *count.lock().unwrap() += 1;
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    let service = limit(live.clone(), store).layer(inner);
    let come = || tokio::spawn(service.clone().oneshot(Request::new(Body::empty())));
    let mut tasks: Vec<_> = (0..4).map(|_| come()).collect();
    settle().await;
    live.replace(rules("[[rule]]\nname = 'other'\nlimits = ['100/s']"));
    tasks.push(come());
    settle().await;
    assert_eq!(*served.lock().unwrap(), 2, "one by the old rules, one by the new");
    live.replace(rules(&text(&Line { places: 5, undelayed: 0 }, 1)));
    tasks.push(come());
    for _ in 0..INTERVAL * 4 {
        pass(&clock).await;
    }
    assert_eq!(*served.lock().unwrap(), 6);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().status(), 200);
    }
}
