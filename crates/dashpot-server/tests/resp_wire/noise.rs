//! Bytes that mean nothing, and those that nearly mean something.

use std::net::Shutdown;

use crate::reply::shown;
use crate::scene::{Scene, all};

const PIECES: [&[u8]; 34] = [
    b"*",
    b"$",
    b"\r\n",
    b"\n",
    b"\r",
    b"0",
    b"1",
    b"2",
    b"3",
    b"4",
    b"9",
    b"-",
    b"-1",
    b"+",
    b":",
    b" ",
    b"*1\r\n",
    b"*2\r\n",
    b"$4\r\n",
    b"$0\r\n",
    b"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n",
    b"PING",
    b"ECHO",
    b"PING\r\n",
    b"CL.THROTTLE",
    b"HELLO",
    b" 3",
    b"\"",
    b"'",
    b"\\x",
    b"\0",
    b"\xff",
    b"POST ",
    b"%1\r\n",
];

fn noise(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.usize(1..200) {
        match random.u8(..10) {
            0 => bytes.extend((0..random.usize(..40)).map(|_| random.u8(..))),
            1 => bytes.extend(random.i64(..).to_string().as_bytes()),
            _ => bytes.extend(PIECES[random.usize(..PIECES.len())]),
        }
    }
    bytes
}

/// Good commands with a few bytes changed, left out or put in.
fn damaged(random: &mut fastrand::Rng) -> Vec<u8> {
    let throttle = "CL.THROTTLE noise 5 1 3600";
    let mut bytes = all(&["PING", throttle, "ECHO hello", "HELLO 3", "CLIENT GETNAME", throttle]);
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..bytes.len());
        match random.u8(..3) {
            0 => bytes[at] = random.u8(..),
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, PIECES[random.usize(..PIECES.len())][0]),
        }
    }
    bytes
}

/// Every one of them is let go once there is no more to come, and nobody else notices.
#[test]
fn whatever_is_said_the_service_lives() {
    let mut scene = Scene::start(&[]);
    let mut steady = scene.connect();
    let mut random = fastrand::Rng::with_seed(0x000d_a5b0_75ee_d001);
    for nth in 0..600 {
        let bytes = if nth % 2 == 0 { noise(&mut random) } else { damaged(&mut random) };
        println!("{nth}: {}", shown(&bytes));
        let mut wire = scene.connect();
        wire.try_send(&bytes);
        let _ = wire.stream.shutdown(Shutdown::Write);
        let said = wire.rest();
        assert!(said.is_empty() || said.ends_with(b"\r\n"), "half a reply: {}", shown(&said));
        if nth % 20 == 0 {
            assert!(steady.ask("PING").is_status("PONG"));
        }
    }
    assert!(scene.runs());
    assert!(!scene.log().contains("panicked"), "{}", scene.log());
    scene.serves();
}
