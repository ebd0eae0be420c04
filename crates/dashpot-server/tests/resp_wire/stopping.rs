//! Stopping: nobody's commands are left without an answer, and nobody idle holds it up.

use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::RedisServer;

use crate::client::PATIENCE;
use crate::scene::{Scene, framed};

#[test]
fn idle_connections_do_not_hold_it_up() {
    let mut scene = Scene::start(&["--drain-delay", "0s", "--drain-timeout", "30s"]);
    let mut idle: Vec<_> = (0..50).map(|_| scene.connect()).collect();
    for wire in &mut idle[..25] {
        assert!(wire.ask("PING").is_status("PONG"));
    }
    idle[0].ask("HELLO 3");
    let begun = Instant::now();
    scene.signal("TERM");
    assert_eq!(scene.end(Duration::from_secs(5)).code(), Some(0));
    println!("gone after {:?}", begun.elapsed());
    for wire in &mut idle {
        assert_eq!(wire.rest(), b"");
    }
    assert!(!scene.log().contains("panicked"), "{}", scene.log());
}

/// Half a command is nothing that is under way.
#[test]
fn who_is_in_the_middle_of_a_command_does_not_hold_it_up_for_long() {
    let mut scene = Scene::start(&["--drain-delay", "0s", "--drain-timeout", "2s"]);
    let mut wire = scene.connect();
    assert!(wire.ask("PING").is_status("PONG"));
    wire.send("*2\r\n$4\r\nEC");
    scene.signal("TERM");
    assert_eq!(scene.end(Duration::from_secs(6)).code(), Some(0));
}

/// What was sent before it was told to stop is answered after.
fn a_batch_is_answered(mut scene: Scene, before_it: impl FnOnce()) {
    let mut wire = scene.connect();
    assert!(wire.ask("PING").is_status("PONG"));
    before_it();
    let throttle = framed(&["CL.THROTTLE", "batch", "999", "1", "3600"]);
    let mut batch = throttle.repeat(100);
    batch.extend(framed(&["ECHO", "last"]));
    wire.send(batch);
    // Until it has been read, at the latest.
    thread::sleep(Duration::from_millis(100));
    scene.signal("TERM");
    for nth in 1..=100 {
        let [limited, limit, remaining, ..] = wire.reply().throttle();
        assert_eq!([limited, limit, remaining], [0, 1000, 1000 - nth]);
    }
    assert_eq!(wire.reply().text(), "last");
    assert_eq!(wire.rest(), b"", "there is no next command");
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
}

#[test]
fn a_batch_that_was_sent_is_answered() {
    a_batch_is_answered(Scene::start(&["--drain-delay", "0s"]), || ());
}

/// It takes its time, less than anybody gives up after.
#[test]
fn a_batch_that_waits_for_redis_is_answered() {
    let redis = RedisServer::start();
    let scene = Scene::on_redis(&redis, &["--drain-delay", "0s"]);
    // It knows Redis by now.
    scene.left("any");
    a_batch_is_answered(scene, || {
        redis.command(&["CLIENT", "PAUSE", "200", "ALL"]);
    });
}

/// As long as it is told to go on serving it does.
#[test]
fn it_goes_on_until_the_delay_is_over() {
    let mut scene = Scene::start(&["--drain-delay", "1500ms"]);
    let mut wire = scene.connect();
    assert!(wire.ask("PING").is_status("PONG"));
    let mut http = scene.client();
    scene.signal("TERM");
    crate::service::until("/readyz to say so", PATIENCE, || {
        (http.get("/readyz").status == 503).then_some(())
    });
    assert!(wire.ask("PING").is_status("PONG"));
    scene.serves();
    assert_eq!(wire.rest(), b"", "then it is over");
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
}
