//! Many at once, who come and go as they please: afterwards everything is as it was.

use std::time::Duration;

use axum::body::Body;
use dashpot_http::{LiveRules, RateLimitLayer};
use dashpot_rules::{Fact, Facts};
use http::{Request, Response};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::JoinSet;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{Answer, Scene, get};
use crate::common::{limit, rules};

const RULES: &str = "
[[priority]]
name = 'pay'
match.path = '/0'
class = 'critical'
[[priority]]
name = 'reports'
match.path = '/1'
class = 'background'
[[priority]]
name = 'hook'
match.path = '/2'
weight = 'unlimited'
[[rule]]
name = 'permits'
limits = '9 concurrent'
classes = { normal = '80%', background = '60%' }
adaptive = { cpu = 'off', latency = '1ms', tick = '10ms' }
[[rule]]
name = 'one'
capacity = { limit = 4, places = 4, wait = '3ms', latency = '1ms', tick = '10ms', max = 6 }
classes = { normal = '80%', background = '50%' }
[[rule]]
name = 'two'
match.path = ['/0', '/3']
capacity = { limit = 2, places = 2, wait = '2ms' }
";

/// By the machine's clock, on several threads, and half of the callers hang up at some moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_and_nothing_is_left_behind() {
    let live = LiveRules::new(rules(RULES));
    let (store, _) = crate::common::store();
    let inner = service_fn(async |request: Request<Body>| {
        let n = request.uri().path().len() as u64;
        tokio::time::sleep(Duration::from_micros(300 * n)).await;
        match number(&request) % 7 {
            0 => Err("failed"),
            1 => Ok(Response::builder().status(500).body(Body::from("no")).unwrap()),
            _ => Ok(Response::new(Body::from("served"))),
        }
    });
    let service = limit(live.clone(), store.clone()).layer(inner);
    let mut callers = JoinSet::new();
    for n in 0..600_u64 {
        let service = service.clone();
        callers.spawn(async move {
            tokio::time::sleep(Duration::from_micros(n * 70)).await;
            let request = Request::get(format!("/{}", n % 5)).header("x-n", n.to_string());
            let call = service.oneshot(request.body(Body::empty()).unwrap());
            let patience = if n % 2 == 0 {
                Duration::from_micros(n * 13 % 4000)
            } else {
                Duration::from_secs(8)
            };
            let Ok(answer) = tokio::time::timeout(patience, call).await else { return };
            // Some do not read what they asked for.
            if let (Ok(response), true) = (answer, n % 3 != 0) {
                let body = http_body_util::BodyExt::collect(response.into_body()).await;
                assert!(body.is_ok());
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let current = live.current();
    let inside = || {
        let gates =
            ["one", "two"].map(|name| super::named(&current, name).gate().unwrap().status());
        gates.map(|status| (status.in_flight, status.waiting))
    };
    let start = tokio::time::Instant::now();
    while inside() != [(0, 0); 2] {
        assert!(start.elapsed() < crate::common::PATIENCE, "{:?}", inside());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // All permits are back.
    let request = Facts::new().with(Fact::Path, "/0");
    let plan = current.select(&request).plan(&request).times(0);
    let ruling = plan.decide(&store, &store).await;
    let status = plan.asked(&ruling)[0].statuses[0];
    assert_eq!(status.remaining(), status.limit());
}

fn number(request: &Request<Body>) -> u64 {
    request.headers()["x-n"].to_str().unwrap().parse::<u64>().unwrap() / 3
}

/// A service that takes one call for each time it says that it is ready. A clone has said nothing yet.
struct Strict<S>(S, bool);

impl<S: Clone> Clone for Strict<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), false)
    }
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Strict<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.1 = true;
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        assert!(std::mem::take(&mut self.1), "called without being ready");
        self.0.call(request)
    }
}

/// Who has waited is served by the service that said that it is ready.
#[tokio::test]
async fn only_who_is_ready_is_called_after_a_wait() {
    let text = "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 3, wait = '1min' }\n";
    let mut scene = Scene::new(text);
    let work = scene.work.clone();
    let inner = Strict(service_fn(move |request| work.clone().serve(request)), false);
    let layer = RateLimitLayer::from_rules(scene.live.clone(), Arc::clone(&scene.store));
    scene.service = layer.layer(inner).boxed_clone();
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(scene.hold("/").await);
    }
    scene.get("/").await.assert_shed();
    scene.go(4).await;
    for answering in all {
        assert_eq!(Answer::of(answering).await.status, 200);
    }
}

/// Scripts of other origins may read when to come back.
#[tokio::test]
async fn other_origins_may_read_the_wait() {
    let scene = Scene::new("[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 0 }\n");
    let _first = scene.hold("/").await;
    let mut request = get("/", "");
    request.headers_mut().insert("origin", "https://a.example".parse().unwrap());
    let shed = scene.send(request).await;
    shed.assert_shed();
    let exposed = shed.headers.get_all("access-control-expose-headers");
    let mut exposed = exposed.iter().flat_map(|line| line.to_str().unwrap().split(", "));
    assert!(exposed.any(|name| name.eq_ignore_ascii_case("retry-after")), "{shed:?}");
}
