//! Those who begin something and do not go on. All of them wait at once.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::scene::{Scene, Wire, framed, words};

const LIMIT: Duration = Duration::from_secs(10);
/// What a busy machine may add, and what clocks may take off.
const LATE: Duration = Duration::from_secs(4);
const EARLY: Duration = Duration::from_millis(500);

/// Says something at once, and something every second, until the other side closes; how long that took.
fn lasted(mut wire: Wire, first: &[u8], every_second: &[u8]) -> Duration {
    let begun = Instant::now();
    wire.try_send(first);
    let tick = if every_second.is_empty() { LIMIT + LATE } else { Duration::from_secs(1) };
    wire.stream.set_read_timeout(Some(tick)).unwrap();
    let mut some = [0; 4096];
    while begun.elapsed() < LIMIT + LATE {
        match wire.stream.read(&mut some) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(_) => drop(wire.stream.write_all(every_second)),
        }
    }
    begun.elapsed()
}

#[test]
fn who_stops_in_the_middle_is_let_go_after_ten_seconds() {
    let open = Scene::start(&[]);
    let closed = Scene::start(&["--resp-password", "sesame"]);
    let long = framed(&["ECHO", &"x".repeat(60_000)]);
    let auth = words("AUTH sesame");
    let cases: [(&str, &Scene, &[u8], &[u8]); 11] = [
        ("half a frame", &open, b"*2\r\n$4\r\nEC", b""),
        ("a letter", &open, b"*", b""),
        ("half of a long one", &open, &long[..30_000], b""),
        ("half a line", &open, b"PIN", b""),
        ("half of the second one", &open, b"PING\r\n*1\r\n$4\r\nPI", b""),
        ("a letter every second", &open, b"*2\r\n$4\r\nECHO\r\n$60000\r\n", b"x"),
        ("a letter of a line every second", &open, b"ECHO ", b"x"),
        ("silent before the password", &closed, b"", b""),
        ("chatty before the password", &closed, b"", b"*1\r\n$4\r\nPING\r\n"),
        ("wrong passwords", &closed, b"", b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"),
        ("half the password", &closed, &auth[..auth.len() - 4], b""),
    ];
    // These have said all they want to say.
    let mut idle = open.connect();
    assert!(idle.ask("PING").is_status("PONG"));
    let mut silent = open.connect();
    let mut known = closed.connect();
    assert!(known.ask("AUTH sesame").is_status("OK"));
    let wrong: Vec<String> = thread::scope(|scope| {
        let waiting: Vec<_> = cases
            .iter()
            .map(|(what, scene, first, every_second)| {
                let wire = Wire::over(Client::to(scene.resp).stream);
                (what, scope.spawn(move || lasted(wire, first, every_second)))
            })
            .collect();
        let lasted = waiting.into_iter().map(|(what, waiting)| (what, waiting.join().unwrap()));
        let judged = lasted.filter_map(|(what, lasted)| {
            println!("{what}: {lasted:?}");
            let right = (LIMIT - EARLY..LIMIT + LATE).contains(&lasted);
            (!right).then(|| format!("{what}: {lasted:?}"))
        });
        judged.collect()
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    for wire in [&mut idle, &mut silent, &mut known] {
        assert!(wire.ask("PING").is_status("PONG"), "who waits between commands stays");
    }
}
