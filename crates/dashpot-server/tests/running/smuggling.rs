//! Requests that two readers could cut in different places. Whoever is in front may have cut them
//! elsewhere, so what comes after is never taken for a request.

use crate::client::get;
use crate::malformed::{answers, is_well, refused};
use crate::service::Service;

#[test]
fn lengths_that_could_be_read_in_two_ways_are_refused() {
    let mut service = Service::start::<&str>(&[]);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n";
    let body = r#"{"key":"a","limit":"100/day"}"#;
    let cases = [
        ("a negative length", "content-length: -1\r\n"),
        ("a length with a sign", "content-length: +29\r\n"),
        ("a length that is none", "content-length: many\r\n"),
        ("an empty length", "content-length:\r\n"),
        ("a length beyond all numbers", "content-length: 99999999999999999999999\r\n"),
        ("two lengths", "content-length: 29\r\ncontent-length: 0\r\n"),
        ("two lengths in one", "content-length: 29, 0\r\n"),
        ("an unknown coding", "transfer-encoding: nonsense\r\n"),
        ("chunks that are not the last", "transfer-encoding: chunked, identity\r\n"),
        ("two codings", "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n"),
        ("a coding with a hidden letter", "transfer-encoding: \x0bchunked\r\n"),
    ];
    for (what, line) in cases {
        let bytes = format!("{head}{line}\r\n{body}{}", get("/readyz"));
        refused(&service, what, bytes.as_bytes(), &[400, 413, 501, 0]);
    }
    is_well(&mut service);
}

/// A length and a coding: whoever is in front may have gone by the other one. What is smuggled in
/// what one of them calls the body is never answered together with what is around it.
#[test]
fn a_length_beside_chunks_smuggles_nothing() {
    let mut service = Service::start::<&str>(&[]);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n";
    let smuggled = r#"{"key":"smuggled","limit":"100/day"}"#;
    let smuggled = format!("{head}content-length: {}\r\n\r\n{smuggled}", smuggled.len());
    let hidden = format!("0\r\n\r\n{smuggled}");
    let both = [
        "content-length: {}\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: {}\r\n",
    ];
    for lines in both {
        let lines = lines.replace("{}", &hidden.len().to_string());
        let bytes = format!("{head}{lines}\r\n{hidden}");
        let (count, _, said) = answers(&service, bytes.as_bytes());
        assert!(count <= 1, "{lines:?}: {said}");
    }
    let left =
        service.client().check(r#"{"key":"smuggled","limit":"100/day","cost":0}"#).remaining();
    assert_eq!(left, 100, "what was smuggled was counted");
    is_well(&mut service);
}

#[test]
fn malformed_chunks_are_refused() {
    let mut service = Service::start::<&str>(&[]);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let cases = [
        "x\r\nabc\r\n0\r\n\r\n",
        "-1\r\nabc\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcdef\r\n0\r\n\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3;\r\n\n\r\nabc\r\n0\r\n\r\n",
    ];
    for body in cases {
        let bytes = format!("{head}{body}{}", get("/readyz"));
        refused(&service, body, bytes.as_bytes(), &[400, 413, 0]);
    }
    let endless = format!("{head}3;{}\r\nabc\r\n0\r\n\r\n", "a".repeat(1 << 20));
    refused(&service, "an endless extension", endless.as_bytes(), &[400, 413, 431, 0]);
    is_well(&mut service);
}
