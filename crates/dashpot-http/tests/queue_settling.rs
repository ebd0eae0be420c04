//! A line whose requests cost in the end what nobody knew before: nobody is forgotten, and nothing stays behind.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use dashpot_http::Used;
use http::{Request, Response, StatusCode};
use proptest::prelude::*;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{limit, rules, store};
use crate::queue_model::{config, pass, settle};

/// What a request comes to: what it used, which status it has, and how long it takes.
#[derive(Clone, Debug)]
struct Answer {
    used: u64,
    status: u16,
    takes: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Comes(Answer),
    HangsUp(usize),
}

/// And how many of these there is room for at once.
const RULES: [(&str, usize); 3] = [
    ("settle = 'header:x-used'\ncost = 2", 4),
    ("charge_on = [401]", 9),
    ("settle = 'header:x-used'\nundelayed = 3", 9),
];

fn text(rest: &str) -> String {
    format!(
        "[[rule]]\nname = 'q'\nlimits = ['25/s']\nalgorithm = 'leaky-bucket'\nqueue = 8\n{rest}\n"
    )
}

fn asking(answer: &Answer) -> Request<Body> {
    let Answer { used, status, takes } = answer;
    Request::get(format!("/{used}/{status}/{takes}")).body(Body::empty()).unwrap()
}

async fn answered(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let parts: Vec<u64> =
        request.uri().path()[1..].split('/').map(|part| part.parse().unwrap()).collect();
    tokio::time::sleep(Duration::from_millis(parts[2])).await;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(parts[1] as u16).unwrap();
    response.extensions_mut().insert(Used(parts[0]));
    Ok(response)
}

async fn play((rest, room): (&str, usize), events: Vec<(u64, Event)>) -> Result<(), TestCaseError> {
    let (store, clock) = store();
    let service = limit(rules(&text(rest)), store).layer(service_fn(answered));
    let mut tasks = Vec::new();
    for (pause, event) in events {
        for _ in 0..pause {
            pass(&clock).await;
        }
        match event {
            Event::Comes(answer) => {
                tasks.push(tokio::spawn(service.clone().oneshot(asking(&answer))));
            }
            Event::HangsUp(nth) => {
                if let Some(task) = tasks.get(nth % tasks.len().max(1)) {
                    task.abort();
                }
            }
        }
        settle().await;
    }
    // Nobody waits for longer than all places take, and the answer.
    for _ in 0..9 * 2 * 40 + 100 {
        pass(&clock).await;
    }
    for (number, task) in tasks.into_iter().enumerate() {
        prop_assert!(task.is_finished(), "{number} still waits");
        if let Ok(answer) = task.await {
            let status = answer.unwrap().status().as_u16();
            prop_assert!([200, 401, 429].contains(&status), "{number}: {status}");
        }
    }
    // What was used too much is paid off in time, and then all of it is there again, and no more.
    for _ in 0..4 {
        clock.advance(Duration::from_secs(60));
    }
    let free = Answer { used: 1, status: 401, takes: 5 };
    let all = (0..30).map(|_| tokio::spawn(service.clone().oneshot(asking(&free))));
    let all: Vec<_> = all.collect();
    settle().await;
    for _ in 0..9 * 2 * 40 + 100 {
        pass(&clock).await;
    }
    let mut admitted = 0;
    for task in all {
        admitted += usize::from(task.await.unwrap().unwrap().status() == 401);
    }
    prop_assert_eq!(admitted, room);
    Ok(())
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let answer = (0..9_u64, prop::sample::select(&[200, 401][..]), 0..50_u64);
    let comes =
        answer.prop_map(|(used, status, takes)| Event::Comes(Answer { used, status, takes }));
    let event = prop_oneof![3 => comes, 1 => (0..30_usize).prop_map(Event::HangsUp)];
    prop::collection::vec((0..30_u64, event), 1..40)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nobody_is_forgotten(nth in 0..RULES.len(), events in events()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(RULES[nth], events))?;
    }
}
