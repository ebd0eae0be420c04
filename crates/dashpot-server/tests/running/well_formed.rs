//! What clients may do and seldom do.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::client::{check, get};
use crate::service::Service;

const ASKED: &str = r#"{"key":"alice","limit":"1000/day"}"#;

#[test]
fn a_thousand_requests_in_one_write_are_answered_in_order() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    let all = check(ASKED).repeat(1000);
    // Read while it is written: neither side has to keep all of it.
    let mut writer = client.stream.try_clone().unwrap();
    let writing = thread::spawn(move || std::io::Write::write_all(&mut writer, all.as_bytes()));
    for left in (0..1000).rev() {
        let answer = client.expect();
        assert!(answer.allowed());
        assert_eq!(answer.remaining(), left, "in order");
    }
    writing.join().unwrap().unwrap();
    assert!(!client.check(ASKED).allowed(), "the thousand are used up");
}

#[test]
fn different_requests_in_one_write_are_answered_in_order() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send(
        [get("/healthz"), get("/nowhere"), check(ASKED), check("{"), get("/readyz")].concat(),
    );
    let all: Vec<_> = (0..5).map(|_| client.expect().status).collect();
    assert_eq!(all, [200, 404, 200, 400, 200]);
}

#[test]
fn who_waits_for_a_word_before_the_body_gets_it() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    let length = ASKED.len();
    let head = format!(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    );
    client.send(&head);
    let word = client.expect();
    assert_eq!(word.status, 100, "{word:?}");
    client.send(ASKED);
    assert!(client.expect().allowed());
    // On the same connection, from one who does not wait for it.
    client.send(format!("{head}{ASKED}"));
    let mut answer = client.expect();
    if answer.status == 100 {
        answer = client.expect();
    }
    assert_eq!(answer.remaining(), 998);
}

#[test]
fn who_announces_too_much_is_told_before_sending_it() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send(
        "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\nexpect: 100-continue\r\n\r\n",
    );
    let answer = client.expect();
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[test]
fn the_old_protocol_works() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send("GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(client.expect().status, 200);
    assert!(client.is_closed(), "who does not ask to keep it has it closed");

    let mut client = service.client();
    let length = ASKED.len();
    client.send(format!("POST /v1/check HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{ASKED}"));
    assert!(client.expect().allowed());
    assert!(client.is_closed());

    let mut client = service.client();
    for _ in 0..2 {
        client.send("GET /healthz HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
        let answer = client.expect();
        assert_eq!(answer.status, 200);
        if !answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("keep-alive"))
        {
            break;
        }
    }
}

#[test]
fn who_says_close_has_it_closed() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert_eq!(client.expect().status, 200);
    assert!(client.is_closed());
}

#[test]
fn who_has_said_all_still_gets_the_answer_or_a_clean_end() {
    let service = Service::start::<&str>(&[]);
    let mut answered = 0;
    for _ in 0..20 {
        let mut client = service.client();
        client.send(check(ASKED));
        client.stream.shutdown(Shutdown::Write).unwrap();
        // A reset, or half an answer, is an error here.
        if let Some(answer) = client.answer().unwrap() {
            assert!(answer.allowed());
            assert!(client.is_closed());
            answered += 1;
        }
    }
    println!("{answered} of 20 were answered");
    // Whatever was not answered may have been counted, and no more than that.
    let left = service.client().check(ASKED).remaining();
    assert!((979..1000).contains(&left), "{left} left");
}

#[test]
fn a_body_in_chunks_is_a_body() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send("POST /v1/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    for byte in ASKED.bytes() {
        client.send(format!("1\r\n{}\r\n", byte as char));
    }
    client.send("0\r\n\r\n");
    assert!(client.expect().allowed());
    assert_eq!(client.check(ASKED).remaining(), 998, "and the connection goes on");
}

#[test]
fn a_request_that_comes_in_pieces_is_a_request() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    for byte in check(ASKED).bytes() {
        client.send([byte]);
        if byte == b'\n' {
            thread::sleep(Duration::from_millis(5));
        }
    }
    assert!(client.expect().allowed());
}

#[test]
fn what_is_asked_with_head_has_no_body() {
    let service = Service::start::<&str>(&[]);
    let mut client = service.client();
    client.send(
        ["HEAD /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), get("/readyz")].concat(),
    );
    client.patience(Duration::from_millis(500));
    let (said, _) = client.rest();
    let said = String::from_utf8(said).unwrap();
    let heads: Vec<_> = said.matches("HTTP/1.1 ").collect();
    assert_eq!(heads.len(), 2, "{said}");
    let (first, _) = said.split_once("\r\n\r\n").unwrap();
    let after = &said[first.len() + 4..];
    assert!(after.starts_with("HTTP/1.1 200"), "{said}");
}
