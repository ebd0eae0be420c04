//! Redis does not answer: `[store] on_error` decides, and everybody gets an answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::{Connection, Reply};

use crate::client::PATIENCE;
use crate::scene::{DAY, Scene, UNAVAILABLE, ask, refused, told, words};
use crate::service::until;

/// Nothing listens there.
const NOWHERE: &str = "redis://127.0.0.1:1";

fn counted_here(scene: &Scene) {
    let mut connection = scene.connect();
    for left in [2, 1, 0] {
        assert_eq!(ask(&mut connection, "k", &[2, 1, DAY]), [0, 3, left, -1, (3 - left) * DAY]);
    }
    assert_eq!(ask(&mut connection, "k", &[2, 1, DAY]), [1, 3, 0, DAY, 3 * DAY]);
    assert_eq!(ask(&mut connection, "k", &[2, 1, DAY, 4]), [1, 3, 0, -1, 3 * DAY]);
    // Also here it is one bucket.
    assert_eq!(ask(&mut connection, "k", &[0, 1, 1]), [1, 1, 0, 3 * DAY, 3 * DAY]);
}

#[test]
fn local_counts_here() {
    counted_here(&Scene::with_store(NOWHERE, "local"));
}

#[test]
fn local_is_the_usual() {
    counted_here(&Scene::with_rules(&format!("[store]\nurl = '{NOWHERE}'\n"), &[]));
    counted_here(&Scene::start(&["--store", NOWHERE]));
}

#[test]
fn allow_lets_pass() {
    let scene = Scene::with_store(NOWHERE, "allow");
    let mut connection = scene.connect();
    for _ in 0..6 {
        let told = ask(&mut connection, "k", &[2, 1, DAY]);
        assert_eq!((told[0], told[1], told[3]), (0, 3, -1), "{told:?}");
    }
}

#[test]
fn deny_is_an_error() {
    let scene = Scene::with_store(NOWHERE, "deny");
    let mut connection = scene.connect();
    for _ in 0..3 {
        assert_eq!(refused(&mut connection, &words("k", &[2, 1, DAY])), UNAVAILABLE);
        assert_eq!(refused(&mut connection, &words("k", &[2, 1, DAY, 0])), UNAVAILABLE);
    }
    // What is wrong is wrong without a store.
    let told = refused(&mut connection, &words("k", &[2, 0, DAY]));
    assert_eq!(told, "Cell error: Store error: Zero rates are not supported");
    let replies = connection.commands(&vec![words("k", &[2, 1, DAY]); 300]).unwrap();
    assert!(replies.iter().all(|reply| *reply == Reply::Error(UNAVAILABLE.into())), "{replies:?}");
}

#[test]
fn what_was_decided_without_the_store_is_counted_as_such() {
    let scene = Scene::with_store(NOWHERE, "local");
    for _ in 0..5 {
        ask(&mut scene.connect(), "k", &[2, 1, DAY]);
    }
    let degraded = scene.service.metric(r#"dashpot_rule_degraded_total{rule="(throttle)"}"#);
    assert_eq!(degraded, 5.0);
}

/// A pipeline of which each answer shows to what it is one. How many of them were of the store's.
fn pipeline(connection: &mut Connection, on_error: &str, round: i64) -> usize {
    const EACH: i64 = 60;
    let mut commands = Vec::new();
    for nth in 0..EACH {
        commands.push(words(format!("key-{nth}"), &[1000 * round + nth, 1, 1, 0]));
        commands.push(vec![b"ECHO".to_vec(), nth.to_string().into_bytes()]);
    }
    // The connection gives up after two seconds without an answer.
    let begun = Instant::now();
    let replies = connection.commands(&commands).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let mut answered = 0;
    for (nth, pair) in (0..).zip(replies.chunks(2)) {
        match &pair[0] {
            Reply::Error(error) if on_error == "deny" => assert_eq!(error, UNAVAILABLE),
            reply => {
                let told = told(reply);
                let limit = 1000 * round + nth + 1;
                assert_eq!((told[0], told[1], told[3]), (0, limit, -1), "{nth}: {told:?}");
                answered += 1;
            }
        }
        assert_eq!(pair[1], Reply::Text(nth.to_string().into_bytes()));
    }
    answered
}

fn is_up(scene: &Scene) -> bool {
    let metrics = scene.service.client().get("/metrics").body;
    let line = metrics.lines().find(|line| line.starts_with("dashpot_store_up{")).unwrap();
    line.ends_with(" 1")
}

/// Something happens to Redis while it is asked on four connections at once, and is undone.
fn under_load(on_error: &str, happens: impl Fn(&RedisServer), undone: impl Fn(&RedisServer)) {
    let redis = RedisServer::start();
    let rules =
        format!("[store]\nurl = '{}'\ndeadline = '200ms'\non_error = '{on_error}'\n", redis.url());
    let scene = Scene::with_rules(&rules, &[]);
    scene.until_the_store_answers();
    let go_on = AtomicBool::new(true);
    thread::scope(|scope| {
        let asked = || {
            let mut connection = scene.connect();
            let mut rounds = 0;
            while go_on.load(Ordering::Relaxed) {
                rounds += 1;
                pipeline(&mut connection, on_error, rounds);
            }
            rounds
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(asked)).collect();
        // In the midst of it, whenever that is.
        thread::sleep(Duration::from_millis(200));
        happens(&redis);
        until("the outage to be seen", PATIENCE, || (!is_up(&scene)).then_some(()));
        thread::sleep(Duration::from_millis(300));
        undone(&redis);
        until("the store to be used again", PATIENCE, || is_up(&scene).then_some(()));
        go_on.store(false, Ordering::Relaxed);
        for thread in threads {
            assert!(thread.join().unwrap() > 1);
        }
    });
    let mut connection = scene.connect();
    until("all to be answered by the store", PATIENCE, || {
        (pipeline(&mut connection, on_error, 1_000_000) == 60).then_some(())
    });
}

#[test]
fn killed_under_load_with_deny() {
    under_load("deny", RedisServer::kill, RedisServer::restart);
}

#[test]
fn killed_under_load_with_local() {
    under_load("local", RedisServer::kill, RedisServer::restart);
}

#[test]
fn hanging_under_load_with_deny() {
    under_load("deny", RedisServer::hang, RedisServer::resume);
}

#[test]
fn hanging_under_load_with_allow() {
    under_load("allow", RedisServer::hang, RedisServer::resume);
}
