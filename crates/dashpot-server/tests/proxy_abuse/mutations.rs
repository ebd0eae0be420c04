//! Requests at random: good ones with something changed, in packets of any size. Whatever reaches the
//! backend is the beginning of what the bytes can mean, and never anything that hides in a body.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::backend::Seen;
use crate::caller::{Caller, Failure};
use crate::cases::Scene;
use crate::frames;
use crate::request::meant;
use crate::wire::{Message, Stop};

const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
const LINES: [&str; 14] = [
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding:\tchunked \r\n",
    "Host: b.example\r\n",
    "Connection: keep-alive\r\n",
    "Connection: close\r\n",
    "Connection: content-length, transfer-encoding\r\n",
    "Expect: 100-continue\r\n",
    "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    " folded\r\n",
    "\r\n",
    "\n",
];

/// Two or three good requests, the last of which closes the connection.
fn good(random: &mut Rng) -> Vec<u8> {
    let mut bytes = String::new();
    for nth in 0..random.usize(1..3) {
        let length = HIDDEN.len();
        bytes += &match random.u8(..4) {
            0 => format!("GET /{nth} HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\r\n"),
            1 => format!(
                "POST /{nth} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"
            ),
            2 => format!(
                "POST /{nth} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a.example\r\n\r\n\
                 {length:x};a=b\r\n{HIDDEN}\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"
            ),
            _ => format!(
                "PUT http://b.example/{nth} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
            ),
        };
    }
    bytes += "GET /last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    bytes.into_bytes()
}

/// Changes it once or a few times.
fn mutate(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..bytes.len());
        let lines: Vec<_> = (0..bytes.len()).filter(|at| bytes[..*at].ends_with(b"\n")).collect();
        let line = if lines.is_empty() { 0 } else { lines[random.usize(..lines.len())] };
        match random.u8(..9) {
            0 => bytes[at] = random.u8(..),
            1 => bytes[at] ^= 1 << random.u8(..8),
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, b"\r\n\t :,;0\0"[random.usize(..9)]),
            4 => bytes.truncate(at.max(1)),
            5 | 6 => {
                let new = LINES[random.usize(..LINES.len())].bytes();
                bytes.splice(line..line, new).for_each(drop);
            }
            7 => {
                // A line twice.
                let end = bytes[line..].iter().position(|byte| *byte == b'\n');
                let twice = bytes[line..line + end.map_or(0, |end| end + 1)].to_vec();
                bytes.splice(line..line, twice).for_each(drop);
            }
            _ => {
                // Some of it once more, elsewhere.
                let some = bytes[at..(at + random.usize(..60)).min(bytes.len())].to_vec();
                bytes.splice(line..line, some).for_each(drop);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'x');
        }
    }
}

/// In packets, or what the other side may take for some.
fn send(caller: &mut Caller, bytes: &[u8], random: &mut Rng) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let count = if random.bool() { rest.len() } else { random.usize(1..=rest.len()) };
        caller.send(&rest[..count]);
        rest = &rest[count..];
        if random.u8(..4) == 0 {
            thread::sleep(Duration::from_micros(300));
        }
    }
}

/// What is wrong with what came of these bytes.
fn wrong(scene: &Scene, bytes: &[u8], changed: bool, random: &mut Rng) -> Option<String> {
    let (requests, rest) = meant(bytes);
    let mut caller = scene.gateway.caller();
    caller.patience(Duration::from_secs(8));
    send(&mut caller, bytes, random);
    let mut answers = Vec::new();
    let failure = loop {
        // There is no more to come, so that is said, but not before all is answered.
        if rest == Stop::Part && answers.len() == requests.len() {
            let _ = caller.stream.shutdown(Shutdown::Write);
        }
        let method = requests.get(answers.len()).map_or("GET", |request| request.word(0));
        match caller.answer_to(method) {
            Ok(answer) => answers.push(answer),
            Err(failure) => break failure,
        }
    };
    let seen = scene.backend.take();
    let mut wanted = requests.iter().map(Message::short);
    for one in &seen {
        match one {
            Seen::Whole(request) if wanted.next().as_ref() == Some(request) => {}
            Seen::Part(_) => {}
            _ => return Some(format!("the backend got {seen:?}, meant was {requests:?}")),
        }
    }
    // One answer for each, and at most one more that says what is wrong.
    let passed = seen.iter().filter(|seen| matches!(seen, Seen::Whole(_))).count();
    if !changed && passed < requests.len() {
        return Some(format!("the backend got {seen:?} only"));
    }
    for (nth, answer) in answers.iter().enumerate() {
        let whole = answer.status() == 200 && nth < passed;
        let method = requests.get(nth).map_or("", |request| request.word(0));
        let right = whole && (method == "HEAD" || answer.text() == requests[nth].short());
        if !(right || answer.status() >= 400 && nth + 1 == answers.len()) {
            return Some(format!("{answers:?}"));
        }
    }
    match failure {
        Failure::Gone => None,
        Failure::Broken(_) | Failure::Late | Failure::Wrong(_) => Some(format!("{failure:?}")),
    }
}

#[test]
fn whatever_is_changed_about_requests_the_backend_gets_what_was_meant() {
    let seed = 0x0ab0_5e0f_da54_9071;
    let mut scene = Scene::start();
    for nth in 0..500 {
        let mut random = Rng::with_seed(seed + nth);
        let mut bytes = good(&mut random);
        // Some stay as they are, and then all of them has to pass.
        let changed = nth % 10 > 0;
        if changed {
            mutate(&mut random, &mut bytes);
        }
        let wrong = wrong(&scene, &bytes, changed, &mut random);
        let sound = scene.is_sound();
        assert!(
            wrong.is_none() && sound.is_ok(),
            "seed {:#x}: {}: {wrong:?} {sound:?}",
            seed + nth,
            bytes.escape_ascii(),
        );
    }
    scene.gateway.is_well();
}

#[test]
fn whatever_is_not_changed_is_passed_on_wherever_it_is_cut() {
    let scene = Scene::start();
    let length = HIDDEN.len();
    let bytes = format!(
        "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{HIDDEN}\
         POST /b HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n\
         5;x=y\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n\
         GET /last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
    );
    let meant: Vec<_> = meant(bytes.as_bytes()).0.iter().map(Message::short).collect();
    assert_eq!(meant.len(), 3);
    let whole = |cuts: &[usize]| {
        let mut caller = scene.gateway.caller();
        let mut last = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            caller.send(&bytes[last..cut]);
            last = cut;
            thread::sleep(Duration::from_micros(500));
        }
        for short in &meant {
            assert_eq!(caller.answer().map(|answer| answer.text()), Ok(short.clone()), "{cuts:?}");
        }
        assert!(caller.is_closed());
        let seen: Vec<_> = meant.iter().cloned().map(Seen::Whole).collect();
        assert_eq!(scene.backend.take(), seen, "cut at {cuts:?}");
    };
    (1..bytes.len()).for_each(|at| whole(&[at]));
    whole(&(1..bytes.len()).collect::<Vec<_>>());
}

/// The same over HTTP/2: what is left of a request there is passed on or it is not, and others are served.
#[test]
fn whatever_is_changed_about_frames_nothing_else_reaches_the_backend() {
    let seed = 0x0ab0_5e0f_da54_9072;
    let mut scene = Scene::start();
    for nth in 0..300 {
        let mut random = Rng::with_seed(seed + nth);
        let mut fields = frames::get("/a").to_vec();
        fields[0].1 = "POST";
        let mut bytes = frames::request(1, &fields, HIDDEN.as_bytes());
        bytes.extend(frames::request(3, &frames::get("/b"), b""));
        mutate(&mut random, &mut bytes);
        let mut connection = frames::Connection::to(&scene.gateway);
        connection.send(&bytes);
        connection.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        while connection.frame().is_ok() {}
        drop(connection);
        // What is left of it may reach the backend while others ask.
        scene.gateway.serves("/marker/1");
        scene.gateway.serves("/marker/2");
        let seen = scene.backend.take();
        let hidden = seen.iter().any(|seen| match seen {
            Seen::Whole(request) => request.starts_with("GET /smuggled"),
            Seen::Part(_) => false,
            Seen::Wrong(_) => true,
        });
        assert!(!hidden, "seed {:#x}: {seen:?}", seed + nth);
    }
    scene.gateway.is_well();
}
