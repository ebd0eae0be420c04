//! HTTP/2 as an attack: much work for the other side at little cost. Nobody else is to wait for it, and
//! nothing of it is to stay.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::Scene;
use crate::frames::{
    CONTINUATION, Connection, DATA, END_HEADERS, END_STREAM, Ended, HEADERS, PING, RESET, SETTINGS,
    block, frame, get, request,
};

/// Four connections send this for two seconds or until they are closed; it is told how often it was
/// called. Meanwhile and afterwards, others are served.
fn flood(what: &str, first: &[u8], more: impl Fn(u32) -> Vec<u8> + Sync) {
    let mut scene = Scene::start();
    for _ in 0..20 {
        scene.gateway.serves("/before");
    }
    let (before, sockets) = (scene.gateway.service.memory(), scene.gateway.sockets());
    let over = AtomicBool::new(false);
    let (mut longest, mut most) = (Duration::ZERO, 0);
    thread::scope(|scope| {
        for _ in 0..4 {
            let (over, more) = (&over, &more);
            let mut connection = Connection::to(&scene.gateway);
            connection.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
            connection.stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            scope.spawn(move || {
                connection.send(first);
                for nth in 0.. {
                    let bytes: Vec<_> = (nth * 20..nth * 20 + 20).flat_map(more).collect();
                    let sent = connection.stream.write_all(&bytes);
                    let gone = matches!(connection.frame(), Err(Ended::Closed));
                    if over.load(Ordering::Relaxed) || gone || sent.is_err() {
                        return;
                    }
                }
            });
        }
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            longest = longest.max(scene.gateway.serves("/honest"));
            most = most.max(scene.gateway.service.memory());
            thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{what}: others waited {longest:?} at most; {before} bytes became {most} at most");
    assert!(longest < Duration::from_secs(3), "{what}: others waited {longest:?}");
    assert!(most < before + 48 * 1024 * 1024, "{what}: {before} bytes became {most}");
    // Those connections to the backend that were kept may stay for a while.
    scene.gateway.has_sockets(sockets + 256, Duration::from_secs(10));
    scene.gateway.serves("/after");
    scene.gateway.is_well();
    scene.backend.is_content();
}

#[test]
fn requests_that_are_taken_back_at_once() {
    let reset = |nth: u32| {
        let stream = 2 * nth + 1;
        let asked = request(stream, &get("/sleep/50"), b"");
        [asked, frame(RESET, 0, stream, &[0, 0, 0, 8])].concat()
    };
    flood("taken back", b"", reset);
}

#[test]
fn requests_that_ask_to_be_taken_back() {
    // A body after its end, or a window that cannot be: the other side has to reset the stream.
    let wrong = |nth: u32| {
        let stream = 2 * nth + 1;
        let asked = frame(HEADERS, END_HEADERS, stream, &block(&get("/a")));
        [asked, frame(8, 0, stream, &[0, 0, 0, 0])].concat()
    };
    flood("to be taken back", b"", wrong);
}

#[test]
fn heads_without_an_end() {
    let first = frame(HEADERS, END_STREAM, 1, &block(&get("/a")));
    let field = block(&[("x-large", &"x".repeat(1000))]);
    flood("continued", &first, |_| frame(CONTINUATION, 0, 1, &field));
}

#[test]
fn heads_continued_by_nothing() {
    let first = frame(HEADERS, END_STREAM, 1, &block(&get("/a")));
    flood("continued by nothing", &first, |_| frame(CONTINUATION, 0, 1, b""));
}

#[test]
fn pings_and_settings_to_be_answered() {
    flood("pings", b"", |nth| frame(PING, 0, 0, &u64::from(nth).to_be_bytes()));
    flood("settings", b"", |_| frame(SETTINGS, 0, 0, b""));
}

#[test]
fn bodies_of_nothing() {
    let mut fields = get("/a").to_vec();
    fields[0].1 = "POST";
    let first = frame(HEADERS, END_HEADERS, 1, &block(&fields));
    flood("nothing", &first, |_| frame(DATA, 0, 1, b""));
}

/// Each says little that stands for much: a table entry that is named again and again.
#[test]
fn heads_that_grow_when_they_are_read() {
    let large = "x".repeat(4000);
    let mut first = vec![0x40];
    first.extend(block(&[("x-large", &large)]).split_off(1));
    let grown = [&block(&get("/a"))[..], &first, &[0xbe; 10_000]].concat();
    let one = |nth: u32| frame(HEADERS, END_HEADERS | END_STREAM, 2 * nth + 1, &grown);
    flood("grown", b"", one);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let scene = Scene::start();
    let many: Vec<_> = (0..1000).map(|nth| (format!("x-{nth}"), "y".repeat(100))).collect();
    let many: Vec<_> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let block = block(&[&get("/a")[..], &many].concat());
    let mut bytes = frame(HEADERS, END_STREAM, 1, &block[..16_000]);
    for part in block[16_000..].chunks(16_000) {
        bytes.extend(frame(CONTINUATION, 0, 1, part));
    }
    bytes.extend(frame(CONTINUATION, END_HEADERS, 1, b""));
    let mut connection = Connection::to(&scene.gateway);
    connection.send(&bytes);
    let end = connection.end(1);
    assert!(matches!(end, Ended::Answered(431, _) | Ended::Reset | Ended::Closed), "{end:?}");
    assert!(scene.backend.take().is_empty());
    scene.is_sound().unwrap();
}
