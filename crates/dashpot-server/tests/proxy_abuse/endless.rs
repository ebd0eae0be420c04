//! Backends that answer without end, or what nobody asked for.

use std::time::{Duration, Instant};

use crate::backend::{Backend, Link};
use crate::caller::{Caller, Failure};
use crate::echo;
use crate::gateway::Gateway;
use crate::wire::Message;

/// `/evil` is answered by `evil`, all else as it should be.
fn backend(evil: impl Fn(&mut Link) + Send + Sync + 'static) -> Backend {
    Backend::start(move |link| {
        while let Some(request) = link.request() {
            if request.word(1).starts_with("/evil") {
                return evil(link);
            }
            if !echo::answer(link, &request) {
                return;
            }
        }
    })
}

fn gateway(backend: &Backend) -> Gateway {
    let gateway = Gateway::start(backend.address, &["--threads", "1", "--response-timeout", "1s"]);
    gateway.serves("/warm");
    gateway
}

/// What eight callers hear at once, how long it takes at most, and how much memory at most.
fn heard(gateway: &mut Gateway) -> Vec<Result<Message, Failure>> {
    let before = gateway.service.memory();
    let sockets = gateway.sockets();
    let begun = Instant::now();
    let mut callers: Vec<Caller> = (0..8).map(|_| gateway.caller()).collect();
    for caller in &mut callers {
        caller.send(crate::caller::get("/evil"));
    }
    let (mut most, mut longest) = (0, Duration::ZERO);
    while begun.elapsed() < Duration::from_millis(700) {
        most = most.max(gateway.service.memory());
        longest = longest.max(gateway.serves("/honest"));
    }
    let heard = callers.iter_mut().map(Caller::answer).collect();
    most = most.max(gateway.service.memory());
    let took = begun.elapsed();
    println!("after {took:?}: {before} bytes became {most}; others waited {longest:?}");
    assert!(longest < Duration::from_secs(3), "others waited {longest:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(most < before + 48 * 1024 * 1024, "{before} bytes became {most}");
    drop(callers);
    gateway.has_sockets(sockets + 8, Duration::from_secs(10));
    gateway.serves("/after");
    gateway.is_well();
    heard
}

/// Of whoever did not answer at all, in time, or in HTTP.
fn is_at_fault(heard: &[Result<Message, Failure>]) {
    for heard in heard {
        let status = heard.as_ref().map(Message::status);
        assert!(matches!(status, Ok(502 | 504)), "{heard:?}");
    }
}

#[test]
fn a_head_without_an_end() {
    let backend = backend(|link| {
        link.send("HTTP/1.1 200 OK\r\nX: ");
        while link.send([b'x'; 64 * 1024]) {}
    });
    is_at_fault(&heard(&mut gateway(&backend)));
}

#[test]
fn a_first_line_without_an_end() {
    let backend = backend(|link| {
        link.send("HTTP/1.1 200 ");
        while link.send([b'x'; 64 * 1024]) {}
    });
    is_at_fault(&heard(&mut gateway(&backend)));
}

#[test]
fn headers_without_an_end() {
    let backend = backend(|link| {
        link.send("HTTP/1.1 200 OK\r\n");
        let some = "X-Header: value\r\n".repeat(1000);
        while link.send(&some) {}
    });
    is_at_fault(&heard(&mut gateway(&backend)));
}

#[test]
fn empty_lines_without_an_end() {
    let backend = backend(|link| while link.send("\r\n".repeat(1000)) {});
    is_at_fault(&heard(&mut gateway(&backend)));
}

#[test]
fn hints_without_an_end() {
    for hint in ["HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let backend = backend(move |link| while link.send(hint.repeat(100)) {});
        is_at_fault(&heard(&mut gateway(&backend)));
    }
}

#[test]
fn hints_one_by_one_are_no_answer_either() {
    let backend = backend(|link| {
        while link.send("HTTP/1.1 102 Processing\r\n\r\n") {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    is_at_fault(&heard(&mut gateway(&backend)));
}

#[test]
fn a_few_hints_before_the_answer_do_no_harm() {
    let backend = Backend::start(|link| {
        while let Some(request) = link.request() {
            link.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n");
            echo::answer(link, &request);
        }
    });
    for heard in heard(&mut gateway(&backend)) {
        assert_eq!(heard.unwrap().text(), "GET /evil");
    }
}

/// It is for the caller to end it, who may have enough of it at any time.
#[test]
fn a_body_without_an_end_is_passed_on_and_not_kept() {
    let backend = backend(|link| {
        link.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x1_0000));
        while link.send(&chunk) {}
    });
    let mut gateway = gateway(&backend);
    let before = gateway.service.memory();
    let mut caller = gateway.caller();
    caller.send(crate::caller::get("/evil"));
    let begun = Instant::now();
    let (mut some, mut read) = (vec![0; 1 << 16], 0);
    while read < 32 << 20 {
        read += std::io::Read::read(&mut caller.stream, &mut some).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "{read} bytes after 20 s");
    }
    let after = gateway.service.memory();
    assert!(after < before + 16 * 1024 * 1024, "{before} bytes became {after}");
    drop(caller);
    crate::service::until("the backend to be told", Duration::from_secs(10), || {
        (backend.open() <= 1).then_some(())
    });
    gateway.serves("/after");
    gateway.is_well();
}

/// Nobody asked for another protocol, so what follows is nobody's.
#[test]
fn another_protocol_that_nobody_asked_for_is_the_backends_fault() {
    let backend = backend(|link| {
        link.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
        link.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled");
        while link.more() {}
    });
    let mut gateway = gateway(&backend);
    for heard in heard(&mut gateway) {
        assert_eq!(heard.as_ref().map(Message::status), Ok(502), "{heard:?}");
    }
    let mut caller = gateway.caller();
    // Neither did this one: it does not say that it concerns the connection.
    caller.send("GET /evil HTTP/1.1\r\nHost: a.example\r\nUpgrade: x\r\n\r\n");
    assert_eq!(caller.answer().unwrap().status(), 502);
    gateway.is_well();
}
