//! Requests in flight: a permit is held until the answer was sent, and never for longer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dashpot_testkit::process::until;

use crate::backend::{Backend, Seen, answer};
use crate::caller::{Caller, PATIENCE, get, request};
use crate::proxy::Proxy;

const ONE: &str = "[[rule]]\nname = 'one'\nlimits = ['1 concurrent']\n";

/// Whether those who are half-way may go on.
type GoOn = Arc<AtomicBool>;

/// `/half` sends the first half of its answer, and the second when it may; `/never` nothing; `/dies` closes, `/dies-half`
/// half-way; `/upgrade` says everything twice.
fn by_path(seen: &Seen, stream: &mut TcpStream, go_on: &AtomicBool) -> io::Result<()> {
    let gone = || Err(io::ErrorKind::ConnectionAborted.into());
    match seen.path() {
        "/half" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf")?;
            until("to go on", PATIENCE, || go_on.load(Ordering::SeqCst).then_some(()));
            stream.write_all(b"half")
        }
        "/never" => {
            let _ = stream.read(&mut [0]);
            gone()
        }
        "/dies" => gone(),
        "/dies-half" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf")?;
            gone()
        }
        "/upgrade" => {
            let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo";
            write!(stream, "{head}\r\n\r\n")?;
            let mut some = [0; 100];
            loop {
                let count = stream.read(&mut some)?;
                if count == 0 || some[..count].contains(&b'!') {
                    return gone();
                }
                stream.write_all(&some[..count].repeat(2))?;
            }
        }
        _ => stream.write_all(&answer("200 OK", "served")),
    }
}

fn start() -> (Backend, Proxy, GoOn) {
    start_with(&["--response-timeout", "5s"])
}

fn start_with(arguments: &[&str]) -> (Backend, Proxy, GoOn) {
    let go_on = GoOn::default();
    let known = Arc::clone(&go_on);
    let backend = Backend::answering(move |seen, stream| by_path(seen, stream, &known));
    let proxy = Proxy::with(&backend, ONE, arguments);
    (backend, proxy, go_on)
}

#[track_caller]
fn assert_taken(proxy: &Proxy) {
    let denied = proxy.get("/");
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("retry-after"), None, "nobody knows how long: {denied:?}");
    let policy = r#""one";q=1;qu="concurrent-requests""#;
    assert_eq!(denied.header("ratelimit-policy"), Some(policy));
}

#[track_caller]
fn assert_free_soon(proxy: &Proxy) {
    until("the permit to be given back", Duration::from_secs(4), || {
        (proxy.get("/").status == 200).then_some(())
    });
}

fn begin(proxy: &Proxy, backend: &Backend, path: &str) -> Caller {
    let before = backend.count();
    let mut caller = proxy.caller();
    caller.send(get(path));
    backend.await_count(before + 1);
    caller
}

#[test]
fn it_is_held_until_the_body_was_sent() {
    let (backend, proxy, go_on) = start();
    let mut caller = begin(&proxy, &backend, "/half");
    assert_eq!(caller.head().unwrap().status, 200);
    assert_eq!(caller.exactly(4).unwrap(), b"half");
    for _ in 0..5 {
        assert_taken(&proxy);
    }
    go_on.store(true, Ordering::SeqCst);
    assert_eq!(caller.exactly(4).unwrap(), b"half");
    assert_free_soon(&proxy);
}

#[test]
fn it_is_given_back_with_each_answer() {
    let (_backend, proxy, _) = start();
    for _ in 0..20 {
        assert_free_soon(&proxy);
        let mut caller = proxy.caller();
        until("a place", PATIENCE, || {
            (caller.ask("HEAD", "/", &[], "").status == 200).then_some(())
        });
    }
}

#[test]
fn it_is_given_back_by_a_caller_who_hangs_up_before_the_answer() {
    let (backend, proxy, _) = start();
    for _ in 0..3 {
        let caller = begin(&proxy, &backend, "/never");
        assert_taken(&proxy);
        drop(caller);
        assert_free_soon(&proxy);
    }
}

#[test]
fn it_is_given_back_by_a_caller_who_hangs_up_within_the_answer() {
    let (backend, proxy, _) = start();
    for nth in 0..3 {
        let mut caller = begin(&proxy, &backend, "/half");
        caller.head().unwrap();
        caller.exactly(4).unwrap();
        assert_taken(&proxy);
        if nth == 1 {
            caller.reset();
        } else {
            drop(caller);
        }
        assert_free_soon(&proxy);
    }
}

#[test]
fn it_is_given_back_if_the_backend_dies() {
    let (_backend, proxy, _) = start();
    for _ in 0..3 {
        assert_eq!(proxy.get("/dies").status, 502);
        assert_free_soon(&proxy);
        assert!(proxy.caller().try_answer_to(&get("/dies-half")).is_err());
        assert_free_soon(&proxy);
    }
}

#[test]
fn it_is_given_back_if_the_backend_does_not_answer_in_time() {
    let (_backend, proxy, _) = start_with(&["--response-timeout", "300ms"]);
    for _ in 0..2 {
        assert_eq!(proxy.get("/never").status, 504);
        assert_free_soon(&proxy);
    }
}

fn upgraded(proxy: &Proxy) -> Caller {
    let mut caller = proxy.caller();
    caller.send(request("GET", "/upgrade", &["connection: upgrade", "upgrade: echo"], ""));
    let head = caller.head().unwrap();
    assert_eq!((head.status, head.header("upgrade")), (101, Some("echo")), "{head:?}");
    caller.send("a");
    assert_eq!(caller.exactly(2).unwrap(), b"aa");
    caller
}

#[test]
fn a_tunnel_holds_it_until_either_side_closes() {
    let (_backend, proxy, _) = start();
    for nth in 0..3 {
        let mut caller = upgraded(&proxy);
        assert_eq!(proxy.metric("dashpot_tunnels"), 1.0);
        for _ in 0..3 {
            assert_taken(&proxy);
        }
        caller.send("b");
        assert_eq!(caller.exactly(2).unwrap(), b"bb");
        match nth {
            0 => drop(caller),
            1 => caller.reset(),
            _ => {
                caller.send("!");
                assert!(caller.is_closed());
            }
        }
        assert_free_soon(&proxy);
        proxy.await_metric("dashpot_tunnels", 0.0);
    }
}

#[test]
fn a_tunnel_nobody_uses_gives_it_back() {
    let (_backend, proxy, _) = start_with(&["--tunnel-timeout", "400ms"]);
    let mut caller = upgraded(&proxy);
    assert_taken(&proxy);
    assert!(caller.is_closed());
    assert_free_soon(&proxy);
}
