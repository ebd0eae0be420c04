//! Stopping: nobody who was let in is sent away without an answer.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE, forward_auth, get};
use crate::service::{Directory, Service, until};

/// Whoever asks a second time waits for a second.
const QUEUE: &str =
    "[[rule]]\nname = 'queue'\nlimits = ['1/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";
const ASKED: &str = r#"{"key":"alice","limit":"1000000/s"}"#;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn first_it_is_unready_then_closed_then_gone() {
    for name in ["TERM", "INT"] {
        let mut service = Service::start(&["--drain-delay", "2s"]);
        let mut client = service.client();
        assert_eq!(client.get("/readyz").status, 200);
        let begun = Instant::now();
        service.signal(name);
        until("/readyz to say so", seconds(2), || {
            (client.get("/readyz").status == 503).then_some(())
        });
        println!("{name}: unready after {:?}", begun.elapsed());
        // Meanwhile all goes on, for those who are there and for those who come.
        assert_eq!(client.get("/healthz").status, 200);
        assert!(client.check(ASKED).allowed());
        assert!(service.client().check(ASKED).allowed());
        assert_eq!(client.get("/v1/health").json()["stopping"], true);
        until("the socket to close", PATIENCE, || Client::try_to(service.address).err());
        let closed = begun.elapsed();
        assert!(closed >= Duration::from_millis(1900), "{name}: closed after {closed:?}");
        assert_eq!(service.end(PATIENCE).code(), Some(0), "{name}");
        println!("{name}: closed after {closed:?}, gone after {:?}", begun.elapsed());
        assert!(!service.log().contains("ERROR") && !service.log().contains("panicked"));
    }
}

#[test]
fn who_is_waiting_in_a_queue_is_answered() {
    let home = Directory::new();
    let mut service = Service::with_rules(&home, QUEUE, &["--drain-delay", "0s"]);
    let mut first = service.client();
    first.send(forward_auth("/"));
    assert_eq!(first.expect().status, 200);
    let mut waiting = service.client();
    let begun = Instant::now();
    waiting.send(forward_auth("/"));
    // Until it has been read, at the latest.
    thread::sleep(Duration::from_millis(150));
    service.signal("TERM");
    let answer = waiting.expect();
    let took = begun.elapsed();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(took > Duration::from_millis(700), "it has to wait its turn: {took:?}");
    assert!(waiting.is_closed(), "there is no next request");
    assert_eq!(service.end(PATIENCE).code(), Some(0));
}

#[test]
fn idle_connections_do_not_hold_it_up() {
    let mut service = Service::start(&["--drain-delay", "0s"]);
    let mut idle: Vec<_> = (0..50).map(|_| service.client()).collect();
    for client in &mut idle[..25] {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let begun = Instant::now();
    service.signal("TERM");
    assert_eq!(service.end(seconds(8)).code(), Some(0));
    println!("gone after {:?}", begun.elapsed());
    for client in &mut idle {
        assert!(client.is_closed());
    }
}

#[test]
fn without_a_delay_it_goes_at_once() {
    let mut service = Service::start(&["--drain-delay", "0s"]);
    let begun = Instant::now();
    service.signal("TERM");
    assert_eq!(service.end(PATIENCE).code(), Some(0));
    let took = begun.elapsed();
    println!("gone after {took:?}");
    assert!(took < Duration::from_millis(900), "{took:?}");
}

#[test]
fn told_twice_it_goes_at_once() {
    let mut service = Service::start(&["--drain-delay", "30s", "--drain-timeout", "30s"]);
    let mut client = service.client();
    service.signal("TERM");
    until("/readyz to say so", seconds(5), || (client.get("/readyz").status == 503).then_some(()));
    assert!(service.runs());
    let begun = Instant::now();
    service.signal("TERM");
    let status = service.end(seconds(5));
    println!("gone after {:?}: {status}", begun.elapsed());
}

#[test]
fn who_never_ends_is_waited_for_so_long_and_no_longer() {
    let mut service = Service::start(&["--drain-delay", "0s", "--drain-timeout", "2s"]);
    let mut client = service.client();
    client.send("POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{");
    thread::sleep(Duration::from_millis(150));
    let begun = Instant::now();
    service.signal("TERM");
    let status = service.end(seconds(9));
    let took = begun.elapsed();
    println!("gone after {took:?}: {status}");
    assert!(took > Duration::from_millis(1800), "it was not waited for: {took:?}");
    assert_eq!(status.code(), Some(0));
}

/// Whoever gets through gets an answer, and never half of one. Who is not let in is told so by the
/// connection, before anything was asked, or between two requests.
#[test]
fn under_load_every_request_is_answered_or_never_begun() {
    let mut service = Service::start(&["--drain-delay", "300ms"]);
    let address = service.address;
    let loads: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                let (mut answered, mut refused) = (0, 0);
                while refused < 20 {
                    let Ok(mut client) = Client::try_to(address) else {
                        refused += 1;
                        thread::sleep(Duration::from_millis(20));
                        continue;
                    };
                    // It may be closed between two requests, and nowhere else.
                    for nth in 0..10 {
                        if client.stream.write_all(get("/healthz").as_bytes()).is_err() {
                            break;
                        }
                        match client.answer() {
                            Ok(Some(answer)) => {
                                assert_eq!(answer.status, 200);
                                answered += 1;
                            }
                            Ok(None) => break,
                            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                                break;
                            }
                            Err(error) => panic!("after {nth} answers: {error}"),
                        }
                    }
                }
                answered
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    service.signal("TERM");
    assert_eq!(service.end(PATIENCE).code(), Some(0));
    let answered: Vec<u32> = loads.into_iter().map(|load| load.join().unwrap()).collect();
    println!("{answered:?} answered");
    assert!(answered.iter().all(|count| *count > 10), "{answered:?}");
}
