//! A page somewhere makes a browser send a form here. What is in it must not be carried out.

use std::thread;
use std::time::Duration;

use crate::reply::shown;
use crate::scene::{Scene, framed};

const TYPED: &str = "CL.THROTTLE browser 5 1 3600\r\n";

fn throttles() -> Vec<u8> {
    let framed = framed(&["CL.THROTTLE", "browser", "5", "1", "3600"]);
    [TYPED.as_bytes(), &framed].concat()
}

#[test]
fn a_line_of_a_browser_is_hung_up_on_without_a_word() {
    let scene = Scene::start(&[]);
    for line in
        ["POST / HTTP/1.1", "Host: x", "post / HTTP/1.1", "host: example.com", "POST", "Host:"]
    {
        for end in ["\r\n", "\n"] {
            let mut wire = scene.connect();
            wire.send([line.as_bytes(), end.as_bytes(), &throttles()].concat());
            let said = wire.rest();
            assert!(said.is_empty(), "{line}: {}", shown(&said));
        }
    }
    // By itself as well, and when it comes in two pieces.
    let mut wire = scene.connect();
    wire.send("POST / HTTP/1.1\r\n");
    assert_eq!(shown(&wire.rest()), "");
    let mut wire = scene.connect();
    wire.send("PO");
    thread::sleep(Duration::from_millis(5));
    wire.try_send([b"ST / HTTP/1.1\r\n".as_slice(), &throttles()].concat());
    assert_eq!(shown(&wire.rest()), "");
    assert_eq!(scene.left("browser"), 6);
}

/// Whatever was answered to what came before, what comes after is not carried out.
#[test]
fn what_a_page_makes_a_browser_send_is_not_carried_out() {
    let scene = Scene::start(&[]);
    let body = "\r\nCL.THROTTLE browser 5 1 3600\r\n".repeat(3);
    for method in ["POST", "GET", "PUT", "OPTIONS", "HEAD"] {
        let head = format!(
            "{method} / HTTP/1.1\r\nHost: 127.0.0.1:6380\r\nUser-Agent: x\r\nAccept: */*\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut wire = scene.connect();
        wire.send([head.as_bytes(), body.as_bytes(), &throttles()].concat());
        let said = String::from_utf8(wire.rest()).unwrap();
        println!("{method}: {said:?}");
        // The first line of others may be answered, as a command that is not known.
        let most = if method == "POST" { 0 } else { 1 };
        assert!(said.lines().count() <= most, "{method}: {said:?}");
    }
    assert_eq!(scene.left("browser"), 6);
    scene.serves();
}
