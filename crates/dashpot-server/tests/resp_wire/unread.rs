//! Those who ask and do not listen. From some point on nothing more is read from them.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use crate::client::PATIENCE;
use crate::reply::Reply;
use crate::scene::{Scene, Wire, framed};

const MIB: usize = 1024 * 1024;

/// A connection that keeps little of what it is sent before it is read.
fn narrow(scene: &Scene) -> Wire {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(32 * 1024).unwrap();
    socket.set_send_buffer_size(32 * 1024).unwrap();
    socket.connect(&scene.resp.into()).unwrap();
    let stream: std::net::TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Wire::over(stream)
}

/// Writes one after the other until nobody takes any more for a second. How many were begun, and what is still to be
/// said of the last.
fn write_until_blocked(
    wire: &mut Wire,
    nth: impl Fn(usize) -> Vec<u8>,
    most: usize,
) -> (usize, Vec<u8>) {
    wire.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut begun, mut written, mut left) = (0, 0, Vec::new());
    while written < most {
        if left.is_empty() {
            left = nth(begun);
            begun += 1;
        }
        match wire.stream.write(&left) {
            Ok(count) => {
                written += count;
                left.drain(..count);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                println!("no more is taken after {written} bytes, {begun} commands");
                return (begun, left);
            }
            Err(error) => panic!("after {written} bytes: {error}"),
        }
    }
    panic!("{written} bytes were taken, and nobody reads a word of the answers");
}

#[test]
fn who_does_not_listen_is_not_listened_to() {
    let scene = Scene::start(&[]);
    let before = scene.memory();
    let mut deaf = narrow(&scene);
    let text = |nth: usize| format!("{nth:08}").repeat(128);
    let (asked, left) =
        write_until_blocked(&mut deaf, |nth| framed(&["ECHO", &text(nth)]), 64 * MIB);
    let begun = Instant::now();
    for _ in 0..20 {
        scene.serves();
    }
    println!("others waited {:?} in all", begun.elapsed());
    let after = scene.memory();
    assert!(after < before + 16 * MIB as u64, "{before} bytes became {after}");
    // What was asked is answered, all of it and in order, once somebody listens.
    let mut writer = deaf.stream.try_clone().unwrap();
    writer.set_write_timeout(Some(PATIENCE)).unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&left));
    for nth in 0..asked {
        assert_eq!(deaf.reply(), Reply::Text('$', text(nth).into()), "{nth} of {asked}");
    }
    writing.join().unwrap().unwrap();
    assert!(deaf.ask("PING").is_status("PONG"));
}

/// Little is asked, and much would be answered.
#[test]
fn long_answers_are_not_kept_without_end() {
    let scene = Scene::start(&[]);
    let mut wire = scene.connect();
    let long = ["COMMAND", "COMMAND DOCS", "INFO"];
    for asked in long {
        wire.ask(asked);
    }
    for asked in long {
        let before = scene.memory();
        let mut deaf = narrow(&scene);
        let line = format!("{asked}\r\n").into_bytes();
        let some = line.repeat(200);
        let (_, _) = write_until_blocked(&mut deaf, |_| some.clone(), 64 * MIB);
        scene.serves();
        let after = scene.memory();
        println!("{asked}: {before} bytes became {after}");
        assert!(after < before + 16 * MIB as u64, "{asked}: {before} bytes became {after}");
        // It may go, or listen for a while; it makes no difference to anybody.
        let mut some = vec![0; MIB];
        deaf.stream.read_exact(&mut some).unwrap();
        drop(deaf);
        scene.serves();
    }
}
