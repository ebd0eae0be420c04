//! Callers who hang up. The backend hears of it soon, and does not work for nobody.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::backend::{Backend, Seen};
use crate::caller::{Caller, get};
use crate::echo;
use crate::frames::{self, Connection, DATA, END_HEADERS, HEADERS, RESET, block, frame};
use crate::gateway::Gateway;
use crate::service::until;

const SOON: Duration = Duration::from_secs(8);

/// A backend that works on `/work` until its caller is gone, and how many of these have left.
fn worker() -> (Backend, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&left);
    let backend = Backend::start(move |link| {
        while let Some(request) = link.request() {
            if request.word(1) == "/work" {
                while link.more() {}
                count.fetch_add(1, SeqCst);
                return;
            }
            if !echo::answer(link, &request) {
                return;
            }
        }
    });
    (backend, left)
}

fn leaves(how: &str, caller: Caller) {
    match how {
        "closes" => drop(caller),
        "resets" => caller.reset(),
        _ => {
            // Says that there is no more to come, and waits for nothing.
            caller.stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
    }
}

#[test]
fn while_the_backend_works() {
    let (backend, left) = worker();
    let mut gateway = Gateway::start(backend.address, &[]);
    gateway.serves("/warm");
    let sockets = gateway.sockets();
    for (nth, how) in ["closes", "resets", "shuts down"].into_iter().enumerate() {
        let callers: Vec<_> = (0..20)
            .map(|_| {
                let mut caller = gateway.caller();
                caller.send(get("/work"));
                caller
            })
            .collect();
        let asked = 20 * (nth + 1);
        until("all to be asked for", SOON, || (backend.times("GET /work") == asked).then_some(()));
        assert_eq!(left.load(SeqCst), 20 * nth);
        callers.into_iter().for_each(|caller| leaves(how, caller));
        until("the backend to be told", SOON, || (left.load(SeqCst) == asked).then_some(()));
        gateway.serves("/next");
    }
    assert_eq!(backend.times("GET /work"), 60, "nobody asks again for somebody who is gone");
    gateway.has_sockets(sockets + 1, SOON);
    gateway.is_well();
}

#[test]
fn while_the_backend_works_over_http_2() {
    let (backend, left) = worker();
    let mut gateway = Gateway::start(backend.address, &[]);
    let mut connection = Connection::to(&gateway);
    for nth in 0..20 {
        connection.send(&frames::request(2 * nth + 1, &frames::get("/work"), b""));
    }
    until("all to be asked for", SOON, || (backend.times("GET /work") == 20).then_some(()));
    for nth in 0..10 {
        connection.send(&frame(RESET, 0, 2 * nth + 1, &[0, 0, 0, 8]));
    }
    until("the backend to be told", SOON, || (left.load(SeqCst) == 10).then_some(()));
    // The others are none of it.
    connection.send(&frames::request(101, &frames::get("/next"), b""));
    assert!(
        matches!(connection.end(101), frames::Ended::Answered(200, body) if body == b"GET /next")
    );
    assert_eq!(left.load(SeqCst), 10);
    drop(connection);
    until("the backend to be told", SOON, || (left.load(SeqCst) == 20).then_some(()));
    gateway.is_well();
}

#[test]
fn while_the_body_is_sent() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &[]);
    gateway.serves("/warm");
    backend.take();
    let sockets = gateway.sockets();
    let head = "POST /a HTTP/1.1\r\nHost: a.example\r\n";
    for begin in [
        format!("{head}Content-Length: 1000\r\n\r\nhello"),
        format!("{head}Content-Length: 1000000\r\n\r\n{}", "x".repeat(500_000)),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"),
    ] {
        for how in ["closes", "resets", "shuts down"] {
            let mut caller = gateway.caller();
            caller.send(&begin);
            leaves(how, caller);
        }
    }
    let mut connection = Connection::to(&gateway);
    let mut fields = frames::get("/a").to_vec();
    fields[0].1 = "POST";
    for stream in [1, 3] {
        connection.send(&frame(HEADERS, END_HEADERS, stream, &block(&fields)));
        connection.send(&frame(DATA, 0, stream, b"hello"));
    }
    connection.send(&frame(RESET, 0, 1, &[0, 0, 0, 8]));
    drop(connection);
    gateway.serves("/next");
    let half = until("all to be over", SOON, || {
        (gateway.sockets() <= sockets + 1).then(|| backend.take())
    });
    let whole = |seen: &&Seen| !matches!(seen, Seen::Part(_));
    let whole: Vec<_> = half.iter().filter(whole).collect();
    assert_eq!(whole, [&Seen::Whole("GET /next".to_owned())]);
    gateway.is_well();
}

#[test]
fn while_the_answer_is_read() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &[]);
    gateway.serves("/warm");
    let sockets = gateway.sockets();
    for how in ["closes", "resets", "shuts down"] {
        let mut callers: Vec<_> = (0..10).map(|_| gateway.caller()).collect();
        for caller in &mut callers {
            caller.send(get("/bytes/50000000"));
            caller.stream.read_exact(&mut [0; 10_000]).unwrap();
        }
        callers.into_iter().for_each(|caller| leaves(how, caller));
        until("the backend to be told", SOON, || (backend.open() <= 2).then_some(()));
        gateway.serves("/next");
    }
    gateway.has_sockets(sockets + 2, SOON);
    gateway.is_well();
}

/// Comes, says anything or nothing, and goes, a few hundred times: nothing of it stays.
#[test]
fn at_any_time() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &["--threads", "2"]);
    let bytes = crate::caller::post("/sleep/20", "hello") + &get("/bytes/300000") + &get("/a");
    let mut random = fastrand::Rng::with_seed(0x00de_ad0f_ca11_e125);
    let round = |random: &mut fastrand::Rng| {
        for _ in 0..400 {
            let mut caller = gateway.caller();
            caller.send(&bytes[..random.usize(..=bytes.len())]);
            if random.bool() {
                caller.patience(Duration::from_millis(random.u64(1..30)));
                let _ = caller.answer();
            }
            leaves(["closes", "resets", "shuts down"][random.usize(..3)], caller);
        }
        gateway.serves("/next");
        gateway.has_sockets(30, Duration::from_secs(15));
        gateway.service.memory()
    };
    round(&mut random);
    let (before, after) = (round(&mut random), round(&mut random));
    assert!(after < before + 8 * 1024 * 1024, "{before} bytes became {after}");
    backend.is_content();
    gateway.is_well();
}
