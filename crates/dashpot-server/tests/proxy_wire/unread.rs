//! Those who do not listen. What is said to them stays with whoever says it.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::message::Message;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{OK, Scene, get, with};
use crate::wire::{Wire, has_no_patience};

const MIB: usize = 1024 * 1024;
const MUCH: usize = 200 * MIB;
/// What may be on its way: in buffers of the gateway, and no more than some.
const ROOM: u64 = 16 * MIB as u64;

/// Writes until nobody takes any more for a second; how much that was.
fn write_until_blocked(stream: &mut TcpStream) -> usize {
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let some = [b'x'; 64 * 1024];
    let mut written = 0;
    while written < MUCH {
        match stream.write(&some[..some.len().min(MUCH - written)]) {
            Ok(count) => written += count,
            Err(error) if has_no_patience(&error) => {
                println!("no more is taken after {written} bytes");
                return written;
            }
            Err(error) => panic!("after {written} bytes: {error}"),
        }
    }
    panic!("all was taken, and nobody reads a word of it");
}

/// Reads what was written, and more, while the other one goes on.
fn read_on(wire: &mut Wire, writer: &mut Wire, written: usize) {
    let more = 20 * MIB;
    let mut some = Message::default();
    some.fields.push(("content-length".to_owned(), (written + more).to_string()));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            writer.stream.set_write_timeout(Some(crate::client::PATIENCE)).unwrap();
            writer.stream.write_all(&vec![b'x'; more]).unwrap();
        });
        wire.body(&mut some).unwrap();
    });
    assert!(some.body.iter().all(|byte| *byte == b'x'));
}

/// Others were served before, so that what that takes is there already.
fn warmed_up(flags: &[&str]) -> (Scene, u64) {
    let scene = Scene::start(flags);
    for _ in 0..20 {
        scene.goes_on();
    }
    let before = scene.memory();
    (scene, before)
}

#[track_caller]
fn has_grown_little(scene: &Scene, before: u64) {
    scene.goes_on();
    let after = scene.memory();
    println!("{before} bytes became {after}");
    assert!(after < before + ROOM, "{before} bytes became {after}");
}

#[test]
fn a_caller_that_does_not_read_lets_the_backend_wait() {
    let (scene, before) = warmed_up(&[]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {MUCH}\r\n\r\n"));
    let written = write_until_blocked(&mut backend.stream);
    has_grown_little(&scene, before);
    // It goes on as soon as somebody reads.
    assert_eq!(caller.head().status(), 200);
    read_on(&mut caller, &mut backend, written);
    has_grown_little(&scene, before);
}

#[test]
fn a_backend_that_does_not_read_lets_the_caller_wait() {
    let (scene, before) = warmed_up(&["--max-body", "unlimited"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", &format!("content-length: {MUCH}\r\n"), ""));
    let mut backend = scene.accept();
    backend.head();
    let written = write_until_blocked(&mut caller.stream);
    has_grown_little(&scene, before);
    read_on(&mut backend, &mut caller, written);
    has_grown_little(&scene, before);
}

#[test]
fn a_tunnel_keeps_no_more() {
    let (scene, before) = warmed_up(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", "connection: upgrade\r\nupgrade: echo\r\n", ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    assert_eq!(caller.head().status(), 101);
    let written = write_until_blocked(&mut backend.stream);
    write_until_blocked(&mut caller.stream);
    has_grown_little(&scene, before);
    read_on(&mut caller, &mut backend, written);
}

/// Over HTTP/2 it is said how much may come.
#[test]
fn a_stream_that_is_not_read_lets_the_backend_wait() {
    let (scene, before) = warmed_up(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = caller.ask(request("GET", "/deaf"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {MUCH}\r\n\r\n"));
    let unread = asked.head();
    assert_eq!(unread.status(), 200);
    write_until_blocked(&mut backend.stream);
    has_grown_little(&scene, before);
    // Other streams of the connection go on.
    let mut other = caller.ask(request("GET", "/other"));
    let mut fine = scene.accept();
    fine.request();
    fine.send(OK);
    assert_eq!(other.head().status(), 200);
    drop(unread);
}
