//! New rules while requests are in, and while they wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use dashpot_http::LiveRules;
use tokio::task::JoinSet;

use super::{Answer, SECOND, Scene, get, settle};
use crate::common::{Server, limit, rules};

fn worker(settings: &str) -> String {
    format!("[[rule]]\nname = 'worker'\ncapacity = {{ {settings} }}\n")
}

#[tokio::test]
async fn who_is_in_and_who_waits_go_on() {
    let text = worker("limit = 1, places = 2, wait = '1min'");
    let scene = Scene::new(&text);
    let (first, second) = (scene.hold("/").await, scene.hold("/").await);
    scene.replace(&text);
    let third = scene.hold("/").await;
    assert_eq!((scene.inside(), scene.called()), ((1, 2), 1));
    scene.replace(&text);
    for (answering, called) in [(first, 2), (second, 3), (third, 3)] {
        scene.go(1).await;
        assert_eq!(Answer::of(answering).await.status, 200);
        assert_eq!(scene.called(), called);
    }
    assert_eq!(scene.inside(), (0, 0));
    assert_eq!(scene.tally("worker"), (3, 0, 0));
}

#[tokio::test]
async fn a_higher_limit_lets_in_who_waits_and_a_lower_one_does_not_throw_out() {
    let scene = Scene::new(&worker("limit = 1, places = 3, wait = '1min'"));
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(scene.hold("/").await);
    }
    scene.replace(&worker("limit = 3, places = 3, wait = '1min'"));
    settle().await;
    assert_eq!((scene.inside(), scene.called()), ((3, 1), 3));
    scene.replace(&worker("limit = 1, places = 0, wait = '1min'"));
    settle().await;
    assert_eq!(scene.inside().0, 3);
    scene.get("/").await.assert_shed();
    scene.go(2).await;
    assert_eq!(scene.inside().0, 1);
    scene.go(2).await;
    settle().await;
    assert_eq!(scene.inside(), (0, 0));
}

/// It waited when the rule went; what it waits for comes all the same.
#[tokio::test]
async fn who_waits_when_the_rule_goes_is_served_in_its_turn() {
    let scene = Scene::new(&worker("limit = 1, places = 2, wait = '1min'"));
    let (first, second) = (scene.hold("/").await, scene.hold("/").await);
    scene.replace("[[rule]]\nname = 'other'\nlimits = '100/s'\n");
    assert_eq!(scene.statuses("/", 5).await, [200; 5], "nobody else is held up");
    scene.go(2).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(Answer::of(second).await.status, 200);
}

#[tokio::test]
async fn what_was_taken_under_the_old_rules_is_given_back_under_the_new() {
    let text = |limit: &str| {
        format!(
            "[[rule]]\nname = 'api'\nlimits = '{limit}'\nalgorithm = 'sliding-log'\n{}",
            worker("limit = 1, places = 1, wait = '10s'")
        )
    };
    let scene = Scene::new(&text("10/h"));
    let _first = scene.hold("/").await;
    let late = scene.hold("/").await;
    scene.replace(&text("20/h"));
    assert_eq!(scene.left("/").await, 18);
    scene.advance(SECOND * 10).await;
    Answer::of(late).await.assert_shed();
    assert_eq!(scene.left("/").await, 19);
}

#[tokio::test]
async fn a_factor_goes_on_and_is_told() {
    let text = "[[rule]]\nname = 'api'\nlimits = '100/h'\nadaptive = { cpu = 'off' }\n";
    let scene = Scene::new(text);
    scene.suffer(50);
    scene.replace(&text.replace("100/h", "200/h"));
    let told = scene.get("/").await;
    assert_eq!(told.get("ratelimit-policy"), Some("\"api\";q=100;w=3600"));
    // What began under the old rules is seen under the new.
    scene.recover();
    let none = Some(dashpot::Percent::default());
    let healthy = dashpot::Vitals { cpu: none, errors: none, slow: none };
    scene.adaptive().push(healthy, Duration::from_nanos(1));
    scene.advance(SECOND).await;
    let mut all = Vec::new();
    for _ in 0..20 {
        all.push(scene.begin(get("/", "hold status=500")).await);
    }
    scene.replace(text);
    scene.go(20).await;
    scene.advance(SECOND).await;
    assert_eq!(scene.adaptive().percent(), 90);
}

/// Many callers, while the rules are replaced all the time: nobody is lost, and nothing is left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaks_while_rules_are_replaced() {
    let text = |limit: u64, places: u64| {
        format!(
            "[[rule]]\nname = 'permits'\nlimits = '50 concurrent'\n\
             {}classes = {{ background = '50%' }}\n",
            worker(&format!("limit = {limit}, places = {places}, wait = '200ms'"))
        )
    };
    let live = LiveRules::new(rules(&text(3, 3)));
    let (store, _) = crate::common::store();
    let handler = async || {
        tokio::time::sleep(Duration::from_micros(300)).await;
        "served"
    };
    let app = Router::new().fallback(handler).layer(limit(live.clone(), store.clone()));
    let server = Arc::new(Server::start(app).await);
    let (done, counts) =
        (Arc::new(AtomicBool::new(false)), Arc::new([const { AtomicU64::new(0) }; 2]));
    let replacing = tokio::spawn({
        let (live, done) = (live.clone(), done.clone());
        async move {
            while !done.load(Ordering::Relaxed) {
                for (limit, places) in [(1, 0), (5, 9), (2, 2), (3, 3)] {
                    live.replace(rules(&text(limit, places)));
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
            }
        }
    });
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let (server, counts) = (server.clone(), counts.clone());
        callers.spawn(async move {
            for _ in 0..40 {
                match crate::common::get("/").status(&server).await {
                    200 => counts[0].fetch_add(1, Ordering::Relaxed),
                    503 => counts[1].fetch_add(1, Ordering::Relaxed),
                    other => panic!("{other}"),
                };
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    replacing.await.unwrap();
    let start = tokio::time::Instant::now();
    let status = || live.current().rules()[1].gate().unwrap().status();
    while (status().in_flight, status().waiting) != (0, 0) {
        assert!(start.elapsed() < crate::common::PATIENCE, "{:?}", status());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (served, shed) = (counts[0].load(Ordering::Relaxed), counts[1].load(Ordering::Relaxed));
    assert_eq!(served + shed, 320);
    let current = live.current();
    let tally = current.rules()[1].tally();
    assert_eq!((tally.allowed(), tally.denied()), (served, shed), "each is counted once");
    assert_eq!(crate::common::get("/").status(&server).await, 200);
}
