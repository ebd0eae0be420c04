//! Many ask at once: what is admitted is what the limit says.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Server, pass};

/// How many of so many that ask at once are allowed.
fn allowed(server: &Server, ask: &Value, threads: usize, each: usize) -> usize {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let one = || {
            let mut client = server.client();
            barrier.wait();
            (0..each).filter(|_| client.check(ask).status == 200).count()
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn no_more_than_the_limit_is_admitted() {
    let server = Server::start(&["--threads", "4"]);
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let ask = json!({"key": "a", "limit": "100/year", "algorithm": algorithm});
        assert_eq!(allowed(&server, &ask, 8, 40), 100, "{algorithm}");
    }
}

#[test]
fn all_or_nothing_holds_among_many() {
    let server = Server::start(&["--threads", "4"]);
    let ask = json!({"checks": [
        {"key": "a", "limit": "1000/year"}, {"key": "b", "limit": "60/year", "algorithm": "fixed-window"},
    ]});
    assert_eq!(allowed(&server, &ask, 8, 30), 60);
    let a = json!({"key": "a", "limit": "1000/year", "cost": 0});
    assert_eq!(server.check(&a).allowed().remaining(), 940, "denials drained the other");
}

#[test]
fn one_reservation_is_settled_once_among_many() {
    let server = Server::start(&["--threads", "4"]);
    let ask = json!({"key": "a", "limit": "100/year", "cost": 50, "reserve": true});
    let token = server.check(&ask).allowed().reservation();
    let barrier = Barrier::new(8);
    let settled: usize = thread::scope(|scope| {
        let one = || {
            let mut client = server.client();
            barrier.wait();
            let body = json!({"reservation": token, "used": 40});
            usize::from(client.post("/v1/settle", &body).status == 200)
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(settled, 1);
    let peek = json!({"key": "a", "limit": "100/year", "cost": 0});
    assert_eq!(server.check(&peek).allowed().remaining(), 60);
}

#[test]
fn slow_and_silent_callers_do_not_stop_others() {
    let server = Server::start(&[]);
    let mut slow: Vec<_> = (0..50).map(|_| server.client()).collect();
    for client in &mut slow {
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"key\"");
    }
    for _ in 0..10 {
        server.check(&json!({"key": "a", "limit": "100/h"})).allowed();
    }
    drop(slow);
    server.get("/healthz").is(200);
}

/// Idle time gives no credit on top of the burst, and waits are never shorter than the rate.
#[test]
fn a_bucket_never_gives_more_than_burst_and_rate() {
    let server = Server::start(&[]);
    for (limit, burst, every) in [("10/s burst 1", 1.0, 0.1), ("50/s burst 5", 5.0, 0.02)] {
        let mut client = server.client();
        let ask = json!({"key": "a", "limit": limit});
        client.check(&ask).allowed();
        pass(0.4);
        let begun = Instant::now();
        let mut count = 0.0;
        while begun.elapsed() < Duration::from_millis(300) {
            if client.check(&ask).status == 200 {
                count += 1.0;
            }
        }
        let most = burst + (begun.elapsed().as_secs_f64() / every).ceil();
        assert!(count <= most && count >= burst, "{limit}: {count} of at most {most}");
    }
}

#[test]
fn more_connections_than_there_may_be_wait_until_others_have_left() {
    let server = Server::start(&["--max-connections", "2"]);
    let (mut one, mut two) = (server.client(), server.client());
    one.get("/healthz").is(200);
    two.get("/healthz").is(200);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get("/healthz").status);
        pass(0.2);
        assert!(!waiting.is_finished(), "a third was served");
        two.get("/healthz").is(200);
        drop(one);
        assert_eq!(waiting.join().unwrap(), 200);
    });
}

#[test]
fn questions_may_follow_each_other_without_waiting() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let body = json!({"key": "alice", "limit": "5/h"}).to_string();
    let one = format!(
        "POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(one.repeat(6).as_bytes());
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(client.answer(false).allowed().remaining(), left);
    }
    client.answer(false).denied("limited");
    client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    client.answer(false).is(200);
    assert!(client.hung_up(), "it was asked to");
}
