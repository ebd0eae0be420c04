//! Stopped while requests go through: every answer is whole, or was never begun.

use std::thread;
use std::time::{Duration, Instant};

use crate::caller::{Caller, Failure, get};
use crate::client::PATIENCE;
use crate::echo;
use crate::frames::{self, Connection, Ended};
use crate::gateway::Gateway;
use crate::service::until;

#[test]
fn under_load_every_request_is_answered_or_never_begun() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &["--drain-delay", "300ms"]);
    let address = gateway.address;
    let paths = ["/a", "/sleep/30", "/bytes/300000", "/sleep/5"];
    let load = move |thread: usize| {
        let path = paths[thread % paths.len()];
        let (mut whole, mut refused) = (0, 0);
        while refused < 20 {
            let Ok(mut caller) = Caller::try_to(address) else {
                refused += 1;
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            // It may be closed between two requests, and nowhere else.
            for nth in 0..20 {
                match caller.get(path) {
                    Ok(answer) => {
                        assert_eq!(answer.status(), 200, "{answer:?}");
                        whole += 1;
                    }
                    Err(Failure::Gone) => break,
                    Err(failure) => panic!("{path}, after {nth} answers: {failure:?}"),
                }
            }
        }
        whole
    };
    let loads: Vec<_> = (0..8).map(|thread| thread::spawn(move || load(thread))).collect();
    thread::sleep(Duration::from_millis(500));
    gateway.service.signal("TERM");
    assert_eq!(gateway.service.end(PATIENCE).code(), Some(0));
    let whole: Vec<u32> = loads.into_iter().map(|load| load.join().unwrap()).collect();
    println!("{whole:?} whole answers");
    assert!(whole.iter().all(|count| *count > 3), "{whole:?}");
    backend.is_content();
    assert!(!gateway.service.log().contains("panicked"), "{}", gateway.service.log());
}

#[test]
fn what_is_under_way_is_ended() {
    let backend = echo::backend();
    let arguments = ["--drain-delay", "0s", "--drain-timeout", "15s"];
    let mut gateway = Gateway::start(backend.address, &arguments);
    // The backend takes its time; the answer takes its time; the body does.
    let mut waits = gateway.caller();
    waits.send(get("/sleep/1500"));
    let mut reads = gateway.caller();
    reads.send(get("/bytes/20000000"));
    let mut sends = gateway.caller();
    sends.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhello");
    let mut frames = Connection::to(&gateway);
    frames.send(&frames::request(1, &frames::get("/sleep/1500?2"), b""));
    let mut idle = gateway.caller();
    assert_eq!(idle.get("/idle").unwrap().status(), 200);
    until("all to be under way", Duration::from_secs(5), || {
        let asked = ["GET /sleep/1500", "GET /bytes/20000000", "GET /sleep/1500?2"];
        asked.iter().all(|asked| backend.times(asked) == 1).then_some(())
    });
    gateway.service.signal("TERM");
    until("the socket to close", Duration::from_secs(5), || Caller::try_to(gateway.address).err());
    assert!(idle.is_closed());
    assert!(gateway.service.runs());
    sends.send("world");
    assert_eq!(sends.answer().unwrap().text(), "POST /a helloworld");
    assert_eq!(waits.answer().unwrap().text(), "GET /sleep/1500");
    assert_eq!(frames.end(1), Ended::Answered(200, b"GET /sleep/1500?2".to_vec()));
    assert_eq!(reads.answer().unwrap().body.len(), 20_000_000);
    for caller in [&mut waits, &mut sends, &mut reads] {
        assert!(caller.is_closed(), "there is no next request");
    }
    drop(frames);
    assert_eq!(gateway.service.end(PATIENCE).code(), Some(0));
    backend.is_content();
}

#[test]
fn what_does_not_end_is_cut_and_looks_cut() {
    let backend = echo::backend();
    let arguments = ["--drain-delay", "0s", "--drain-timeout", "2s"];
    let mut gateway = Gateway::start(backend.address, &arguments);
    let mut waits = gateway.caller();
    waits.send(get("/sleep/8000"));
    let mut reads = gateway.caller();
    reads.send(get("/bytes/100000000"));
    let mut sends = gateway.caller();
    sends.send("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhello");
    until("them to be under way", Duration::from_secs(5), || {
        let asked = ["GET /sleep/8000", "GET /bytes/100000000"];
        asked.iter().all(|asked| backend.times(asked) == 1).then_some(())
    });
    let begun = Instant::now();
    gateway.service.signal("TERM");
    assert_eq!(gateway.service.end(Duration::from_secs(10)).code(), Some(0));
    let took = begun.elapsed();
    println!("gone after {took:?}");
    assert!(took > Duration::from_millis(1800), "they were not waited for: {took:?}");
    for caller in [&mut waits, &mut reads, &mut sends] {
        let told = caller.answer();
        assert!(!told.as_ref().is_ok_and(|answer| answer.status() == 200), "{told:?}");
    }
    assert_eq!(backend.times("POST /a hello"), 0);
    backend.is_content();
}

#[test]
fn who_waits_in_a_queue_is_answered() {
    let rules =
        "[[rule]]\nname = 'queue'\nlimits = ['1/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";
    let backend = echo::backend();
    let mut gateway = Gateway::with_rules(backend.address, rules, &["--drain-delay", "0s"]);
    gateway.serves("/first");
    let mut waiting: Vec<_> = (0..2).map(|_| gateway.caller()).collect();
    waiting.iter_mut().for_each(|caller| caller.send(get("/waits")));
    until("them to wait", Duration::from_secs(5), || {
        (gateway.service.metric("dashpot_queued") == 2.0).then_some(())
    });
    gateway.service.signal("TERM");
    for caller in &mut waiting {
        assert_eq!(caller.answer().unwrap().text(), "GET /waits");
        assert!(caller.is_closed(), "there is no next request");
    }
    assert_eq!(gateway.service.end(PATIENCE).code(), Some(0));
}
