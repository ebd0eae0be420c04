//! Over real connections: callers who hang up, handlers that panic, and a crowd.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::get as route;
use dashpot::{GateStatus, ManualClock, Percent, Vitals};
use dashpot_http::{LiveRules, MemoryStore, RateLimitLayer, RuleSet};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;

use super::{Fed, until};
use crate::common::{Answer, Server, get, limit, rules};

const RULES: &str = r#"
    [[priority]]
    name = "pay"
    match = { path = "/pay" }
    class = "critical"

    [[priority]]
    name = "hook"
    match = { path = "/hook" }
    weight = "unlimited"

    [[rule]]
    name = "api"
    limits = ["10/min"]
    adaptive = { cpu = "off" }

    [[rule]]
    name = "worker"
    capacity = { limit = 1, places = 1, wait = "1min" }
"#;

/// A server whose handlers answer when they are told to.
async fn held(text: &str) -> (Server, Arc<RuleSet>, ManualClock, Arc<Semaphore>) {
    let clock = ManualClock::default();
    let rules = RuleSet::parse(text).unwrap().with_clock(clock.clone());
    let live = LiveRules::new(rules);
    let go = Arc::new(Semaphore::new(0));
    let wait = go.clone();
    let handler = async move || {
        wait.acquire().await.unwrap().forget();
        StatusCode::OK
    };
    let store = MemoryStore::with_clock(clock.clone());
    let layer = RateLimitLayer::from_rules(live.clone(), store);
    let panics = route(async || {
        if true {
            panic!("on purpose")
        }
    });
    let streams = route(async || {
        let (feeder, food) = unbounded_channel();
        feeder.send(Bytes::from("some")).unwrap();
        tokio::spawn(async move { feeder.closed().await });
        Body::new(Fed(food))
    });
    let app = Router::new().route("/panic", panics).route("/stream", streams);
    let app = app.fallback(route(handler)).layer(layer);
    (Server::start(app).await, live.current(), clock, go)
}

fn gate(rules: &RuleSet) -> GateStatus {
    rules.rules().iter().find_map(|rule| rule.gate()).unwrap().status()
}

#[tokio::test]
async fn one_is_in_one_waits_and_the_third_is_turned_away() {
    let (server, rules, _clock, go) = held(RULES).await;
    let server = Arc::new(server);
    let ask = |path: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { get(path).send(&server).await })
    };
    let first = ask("/");
    until(|| gate(&rules).in_flight == 1).await;
    let second = ask("/");
    until(|| gate(&rules).waiting == 1).await;
    let third = get("/").send(&server).await;
    assert_eq!((third.status, third.get("retry-after")), (503, Some("1")));
    assert!(third.text().contains("#temporary-reduced-capacity"), "{}", third.text());
    // What is more important takes the place of who waits, which gets back what it had taken.
    let critical = ask("/pay");
    assert_eq!(second.await.unwrap().status, 503);
    // Who is never turned away is in, too.
    let hook = ask("/hook");
    until(|| gate(&rules).in_flight == 2).await;
    go.add_permits(3);
    for answer in [first, critical, hook] {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    until(|| gate(&rules).in_flight == 0).await;
    go.add_permits(10);
    // Two of ten are used: those who were served.
    assert_eq!(get("/").send(&server).await.get("ratelimit"), Some("\"api\";r=7;t=42"));
    let tally = |name: &str| {
        let rule = rules.rules().iter().find(|rule| rule.name() == name).unwrap();
        (rule.tally().allowed(), rule.tally().denied())
    };
    assert_eq!(tally("worker"), (4, 2));
    let priorities: Vec<_> =
        rules.priorities().map(|(name, tally)| (name, tally.allowed(), tally.denied())).collect();
    assert_eq!(priorities, [("pay", 1, 0), ("hook", 1, 0)]);
}

#[tokio::test]
async fn a_lower_limit_is_told_and_denied_by_503() {
    let (server, rules, clock, go) = held(RULES).await;
    go.add_permits(100);
    let adaptive = rules.rules().iter().find_map(|rule| rule.adaptive()).unwrap();
    let vitals = Vitals { errors: Some(Percent::new(50)), ..Vitals::default() };
    adaptive.push(vitals, Duration::from_secs(60));
    clock.advance(Duration::from_secs(20));
    assert_eq!(adaptive.percent(), 50);
    let first = get("/").send(&server).await;
    assert_eq!(first.get("ratelimit-policy"), Some("\"api\";q=5;w=60"));
    for _ in 0..4 {
        assert_eq!(get("/").status(&server).await, 200);
    }
    let denied = get("/").send(&server).await;
    assert_eq!((denied.status, denied.get("retry-after")), (503, Some("12")));
}

#[tokio::test]
async fn callers_who_hang_up_are_noticed_wherever_they_are() {
    let (server, rules, _clock, _go) = held(&RULES.replace("10/min", "1000/min")).await;
    for _ in 0..3 {
        let served = get("/").begin(&server).await;
        until(|| gate(&rules).in_flight == 1).await;
        let waits = get("/").begin(&server).await;
        until(|| gate(&rules).waiting == 1).await;
        drop(waits);
        until(|| gate(&rules).waiting == 0).await;
        drop(served);
        until(|| gate(&rules).in_flight == 0).await;
        let mut streamed = get("/stream").begin(&server).await;
        assert_eq!(Answer::read_head(&mut streamed).await.status, 200);
        assert_eq!(gate(&rules).in_flight, 1);
        drop(streamed);
        until(|| gate(&rules).in_flight == 0).await;
        drop(get("/panic").begin(&server).await);
        until(|| gate(&rules).in_flight == 0).await;
    }
}

/// No more than the limit at once, and everybody gets an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_finds_as_much_room_as_there_is() {
    let text = "[[rule]]\nname = 'rate'\nlimits = '5000/h'\nalgorithm = 'fixed-window'\n\
                [[rule]]\nname = 'worker'\ncapacity = { limit = 3, places = 4, wait = '50ms' }\n";
    let (inside, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (now, peak) = (inside.clone(), most.clone());
    let handler = async move || {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        now.fetch_sub(1, Ordering::SeqCst);
        "served"
    };
    let live = LiveRules::new(rules(text));
    let store = crate::common::store().0;
    let app = Router::new().fallback(handler).layer(limit(live.clone(), store));
    let server = Arc::new(Server::start(app).await);
    let mut callers = JoinSet::new();
    for _ in 0..16 {
        let server = server.clone();
        callers.spawn(async move { get("/").statuses(&server, 20).await });
    }
    let statuses: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    let count = |status| statuses.iter().filter(|one| **one == status).count();
    let (served, shed) = (count(200), count(503));
    assert_eq!(served + shed, 320);
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    until(|| gate(&live.current()).in_flight == 0).await;
    // Exactly those who were served have used something, and this one.
    let last = get("/").send(&server).await;
    let left = format!("\"rate\";r={};", 5000 - served - 1);
    assert!(last.get("ratelimit").unwrap().starts_with(&left), "{left} {last:?}");
}
