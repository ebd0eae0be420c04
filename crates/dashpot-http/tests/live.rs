//! Rules that are replaced while they are used: no request fails, and nothing is forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use dashpot_rules::LiveRules;
use tokio::task::JoinSet;

use crate::common::{Server, get, limit, rules, store};

async fn server(text: &str) -> (Server, LiveRules) {
    let live = LiveRules::new(rules(text));
    let app = Router::new().fallback(async || "served");
    (Server::start(app.layer(limit(live.clone(), store().0))).await, live)
}

fn limited(limit: &str) -> String {
    format!(
        "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['{limit}']\nalgorithm = 'sliding-log'\n"
    )
}

#[tokio::test]
async fn what_was_used_stays_used() {
    let (server, live) = server(&limited("5/h")).await;
    assert_eq!(get("/").statuses(&server, 3).await, [200; 3]);
    live.replace(rules(&limited("5/h")));
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    // More is allowed now, of which five are used.
    live.replace(rules(&limited("7/h")));
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    live.replace(rules(&limited("2/h")));
    assert_eq!(get("/").status(&server).await, 429);
}

#[tokio::test]
async fn rules_of_another_name_or_window_begin_anew() {
    let (server, live) = server(&limited("1/h")).await;
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
    live.replace(rules(&limited("1/h").replace("api", "other")));
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
    live.replace(rules(&limited("1/day").replace("api", "other")));
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
    // Without rules nobody is limited.
    live.replace(rules(""));
    assert_eq!(get("/").statuses(&server, 3).await, [200; 3]);
}

#[tokio::test]
async fn new_rules_are_believed_at_once() {
    let (server, live) = server(&limited("9/h")).await;
    assert_eq!(get("/").status(&server).await, 200);
    live.replace(rules(&format!("[block]\nip = ['127.0.0.1']\n{}", limited("9/h"))));
    assert_eq!(get("/").status(&server).await, 403);
    live.replace(rules(&limited("9/h")));
    assert_eq!(get("/").status(&server).await, 200);
}

/// Many callers, while the rules are replaced all the time by others that limit the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_rules_are_replaced() {
    const LIMIT: u64 = 60;
    let text = limited(&format!("{LIMIT}/h"));
    let variants = [
        text.clone(),
        format!("[headers]\nstyles = ['x-ratelimit']\n{text}"),
        format!("{text}[[rule]]\nname = 'shadow'\nlimits = ['1/min']\nshadow = true"),
        format!("[[rule]]\nname = 'first'\nlimits = ['100000/s']\n{text}"),
        format!("{text}on_deny = {{ body = 'no' }}"),
    ];
    let (server, live) = server(&text).await;
    let (server, passed) = (Arc::new(server), Arc::new(AtomicU64::new(0)));
    let done = Arc::new(AtomicBool::new(false));
    let replacing = {
        let done = done.clone();
        tokio::spawn(async move {
            let mut replaced = 0;
            while !done.load(Ordering::Relaxed) {
                for variant in &variants {
                    live.replace(rules(variant));
                    replaced += 1;
                    tokio::time::sleep(Duration::from_micros(100)).await;
                }
            }
            replaced
        })
    };
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (server, passed) = (server.clone(), passed.clone());
        callers.spawn(async move {
            for _ in 0..25 {
                match get("/").status(&server).await {
                    200 => drop(passed.fetch_add(1, Ordering::Relaxed)),
                    429 => {}
                    other => panic!("{other}"),
                }
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(replacing.await.unwrap() >= 5);
    assert_eq!(passed.load(Ordering::Relaxed), LIMIT);
}
