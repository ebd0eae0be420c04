//! What went wrong once.

use std::thread;
use std::time::Duration;

use crate::client::PATIENCE;
use crate::reply::Reply;
use crate::scene::{Scene, framed};
use crate::service::Directory;

/// It overflowed, and took what all connections of the thread share with it: nobody was served there any more.
#[test]
fn a_look_with_the_largest_numbers_is_answered_and_others_are_served() {
    let scene = Scene::start(&["--threads", "1"]);
    let most = i64::MAX;
    let mut wire = scene.connect();
    wire.send(framed(&[
        "CL.THROTTLE",
        "k",
        &most.to_string(),
        &most.to_string(),
        &most.to_string(),
        "0",
    ]));
    let answered = wire.try_reply();
    for _ in 0..4 {
        scene.serves();
    }
    let [limited, limit, remaining, ..] = answered.unwrap().unwrap().throttle();
    assert_eq!([limited, limit, remaining], [0, most, most]);
    assert!(!scene.log().contains("panicked"), "{}", scene.log());
}

/// To close while there is something to read takes back what was answered: what was counted then has no answer.
#[test]
fn who_has_sent_more_than_was_read_when_it_stops_hears_of_all_that_was_counted() {
    let home = Directory::new();
    let state = home.path().join("state");
    let arguments =
        ["--drain-delay", "0s", "--threads", "1", "--state-file", state.to_str().unwrap()];
    let mut scene = Scene::start(&arguments);
    let mut wire = scene.connect();
    // Answers that fill all buffers, to commands that fit into them.
    let throttle = framed(&["CL.THROTTLE", "all", "999999", "1", "1000000"]);
    wire.send([throttle, framed(&["COMMAND"])].concat().repeat(10_000));
    thread::sleep(Duration::from_millis(500));
    scene.signal("TERM");
    thread::sleep(Duration::from_millis(200));
    let mut answered = 0;
    let ended = loop {
        match wire.try_reply() {
            Ok(Some(Reply::Many(_, numbers))) if numbers.len() == 5 => answered += 1,
            Ok(Some(_)) => {}
            ended => break ended,
        }
    };
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
    drop(scene);
    let scene = Scene::start(&arguments);
    let [_, limit, remaining, ..] =
        scene.connect().ask("CL.THROTTLE all 999999 1 1000000 0").throttle();
    assert_eq!(limit - remaining, answered, "counted, and answered until {ended:?}");
}
