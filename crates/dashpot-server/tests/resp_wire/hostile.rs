//! Those who announce more than they send.

use std::thread;
use std::time::Duration;

use crate::reply::Reply;
use crate::scene::{Scene, Wire, framed};

const MIB: u64 = 1024 * 1024;

/// What it takes at most while it has nothing to do but to keep what it was sent.
fn most(scene: &Scene) -> u64 {
    let measured = (0..10).map(|_| {
        thread::sleep(Duration::from_millis(50));
        scene.memory()
    });
    measured.max().unwrap()
}

/// So many connections, of which each was served once.
fn connected(scene: &Scene, count: usize) -> Vec<Wire> {
    let mut wires: Vec<_> = (0..count).map(|_| scene.connect()).collect();
    wires.iter_mut().for_each(|wire| assert!(wire.ask("PING").is_status("PONG")));
    wires
}

#[test]
fn who_announces_much_and_sends_half_takes_no_more_than_that() {
    let scene = Scene::start(&[]);
    let mut wires = connected(&scene, 200);
    let before = scene.memory();
    let text = "x".repeat(60 * 1024);
    let whole = framed(&["ECHO", &text]);
    let (first, second) = whole.split_at(whole.len() / 2);
    wires.iter_mut().for_each(|wire| wire.send(first));
    scene.serves();
    let after = most(&scene);
    println!("{before} bytes became {after}");
    // Half of each is six megabytes, all of it twelve.
    assert!(after < before + 40 * MIB, "{before} bytes became {after}");
    // All of it is answered when the rest comes.
    for wire in &mut wires {
        wire.send(second);
        assert_eq!(wire.reply(), Reply::Text('$', text.clone().into()));
    }
    // Nor do answers leave anything behind.
    let idle = most(&scene);
    println!("{after} bytes became {idle}");
    assert!(idle < before + 40 * MIB, "{before} bytes became {idle}");
}

#[test]
fn who_only_announces_takes_nothing() {
    let scene = Scene::start(&[]);
    let mut wires = connected(&scene, 400);
    let before = scene.memory();
    for (nth, wire) in wires.iter_mut().enumerate() {
        wire.send(if nth % 2 == 0 {
            "*1024\r\n$60000\r\n"
        } else {
            "*1024\r\n$1\r\nx\r\n$60000\r\n"
        });
    }
    scene.serves();
    let after = most(&scene);
    println!("{before} bytes became {after}");
    assert!(after < before + 12 * MIB, "{before} bytes became {after}");
    for wire in &mut wires[..20] {
        wire.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        assert!(wire.try_reply().is_err(), "neither an answer nor the end");
    }
}

/// Those that wait for more hold nobody up, not even when they are many and go without a word.
#[test]
fn who_goes_in_the_middle_is_forgotten() {
    let scene = Scene::start(&[]);
    let whole = framed(&["CL.THROTTLE", "gone", "5", "1", "3600"]);
    for length in 1..whole.len() {
        scene.connect().send(&whole[..length]);
    }
    scene.serves();
    assert_eq!(scene.left("gone"), 6, "half a command is none");
}
