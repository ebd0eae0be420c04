//! How long a command may be, and what becomes of those that are longer.

use crate::reply::{Reply, shown};
use crate::scene::{Scene, Wire, framed};

const KIB: usize = 1024;

/// Says something that is too much, hears why, and that it is the end.
#[track_caller]
fn too_much(scene: &Scene, what: &str, bytes: &[u8]) -> String {
    let mut wire = scene.connect();
    wire.try_send(bytes);
    let said = wire.rest();
    assert!(said.starts_with(b"-ERR Protocol error: "), "{what}: {}", shown(&said));
    assert!(said.ends_with(b"\r\n"), "{what}: {}", shown(&said));
    let said = String::from_utf8(said).unwrap();
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    said.trim_end().to_owned()
}

fn echoes(wire: &mut Wire, bytes: &[u8], text: &[u8]) {
    wire.send(bytes);
    assert_eq!(wire.reply(), Reply::Text('$', text.into()));
}

#[test]
fn a_command_has_at_most_1024_arguments() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    let arity = "ERR wrong number of arguments for 'echo' command";
    let arguments = |count: usize| [&["ECHO"], vec!["x"; count - 1].as_slice()].concat();
    wire.send(framed(&arguments(1024)));
    assert_eq!(wire.reply().error(), arity);
    wire.send(framed(&arguments(1023)));
    assert_eq!(wire.reply().error(), arity);
    assert!(wire.ask("PING").is_status("PONG"), "and it goes on");
    wire.send(framed(&vec!["".to_owned(); 1024]));
    assert!(wire.reply().error().starts_with("ERR unknown command ''"));
    // Told when it is announced.
    for count in ["1025", "1026", "4096", "65536", "1048576", "1048577", "2147483647"] {
        let why = too_much(&scene, count, format!("*{count}\r\n").as_bytes());
        assert_eq!(why, "-ERR Protocol error: invalid multibulk length", "{count}");
    }
    too_much(&scene, "all of it", &framed(&arguments(1025)));
}

#[test]
fn a_line_has_no_more_arguments_than_a_frame() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    wire.send(format!("ECHO{}\r\n", " x".repeat(1023)));
    assert_eq!(wire.reply().error(), "ERR wrong number of arguments for 'echo' command");
    assert!(wire.ask("PING").is_status("PONG"), "and it goes on");
    too_much(&scene, "1025 words", format!("ECHO{}\r\n", " x".repeat(1024)).as_bytes());
    too_much(&scene, "30 000 words", format!("{}\r\n", "x ".repeat(30_000)).as_bytes());
}

#[test]
fn a_command_has_at_most_64_kib() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    // All there is to it fits.
    let text = vec![b'x'; 63 * KIB];
    echoes(&mut wire, &framed(&[b"ECHO", text.as_slice()]), &text);
    echoes(&mut wire, &framed(&[b"PING", text.as_slice()]), &text);
    // Many that are not long each.
    let kib = "x".repeat(KIB);
    wire.send(framed(&[&["ECHO"], [kib.as_str(); 60].as_slice()].concat()));
    assert_eq!(wire.reply().error(), "ERR wrong number of arguments for 'echo' command");
    // Told when it is announced.
    for length in ["65537", "65540", "70000", "1048576", "536870912", "2147483647"] {
        let announced = format!("*2\r\n$4\r\nECHO\r\n${length}\r\n");
        let why = too_much(&scene, length, announced.as_bytes());
        assert_eq!(why, "-ERR Protocol error: invalid bulk length", "{length}");
    }
    too_much(&scene, "66 KiB", &framed(&["ECHO", &"x".repeat(66 * KIB)]));
    too_much(&scene, "66 arguments", &framed(&[&["ECHO"], [kib.as_str(); 66].as_slice()].concat()));
    too_much(&scene, "two halves", &framed(&["ECHO", &kib.repeat(33), &kib.repeat(33)]));
    assert!(wire.ask("PING").is_status("PONG"), "others go on");
}

#[test]
fn a_line_has_at_most_64_kib() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    let text = "x".repeat(63 * KIB);
    echoes(&mut wire, format!("ECHO {text}\r\n").as_bytes(), text.as_bytes());
    let too_big = "-ERR Protocol error: too big inline request";
    let long = "x".repeat(66 * KIB);
    assert_eq!(too_much(&scene, "without an end", long.as_bytes()), too_big);
    assert_eq!(too_much(&scene, "of spaces", " ".repeat(66 * KIB).as_bytes()), too_big);
    assert_eq!(too_much(&scene, "with an end", format!("ECHO {long}\r\n").as_bytes()), too_big);
    // The lines that tell lengths are lines, too.
    too_much(&scene, "a count without an end", format!("*{}", "1".repeat(66 * KIB)).as_bytes());
    let length = format!("*1\r\n${}", "1".repeat(66 * KIB));
    too_much(&scene, "a length without an end", length.as_bytes());
    assert!(wire.ask("PING").is_status("PONG"), "others go on");
}
