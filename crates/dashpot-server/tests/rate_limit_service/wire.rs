//! What comes over the wire and is no call, or a wrong one: it is told, and the service goes on.

use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dashpot_testkit::process::{await_stopped, signal};
use serde_json::{Value, json};

use crate::client::PATIENCE;
use crate::door::{Refusal, descriptor, request};
use crate::rpc::call;
use crate::scene::{Scene, over_grpc};

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 1000 }
";
const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/// `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`
const GOOD: &[u8] = b"\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01v";

fn raw(scene: &Scene, method: &str, bytes: &[u8], more: Value) -> Result<(), Refusal> {
    let to = scene.grpc.to_string();
    let mut asked =
        json!({"op": "raw", "to": to, "method": method, "bytes": STANDARD.encode(bytes)});
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    over_grpc(&call(asked)).map(|answer| assert!(!answer.over, "{answer:?}"))
}

/// It still answers, on the same connection and on others.
fn goes_on(scene: &Scene) {
    scene.hit("d", &[("other", "")]).is_free();
    raw(scene, METHOD, GOOD, json!({})).unwrap();
    assert_eq!(scene.service.client().get("/healthz").status, 200);
}

#[test]
fn bytes_that_are_no_message() {
    let scene = Scene::start(YAML, &[]);
    goes_on(&scene);
    let left = scene.left("d", &[("k", "v")]);
    assert_eq!(left, 999, "these bytes are what they are meant to be");
    for bytes in [
        &b"\xff\xff\xff\xff"[..],
        b"\x0a",
        b"\x0a\x7fd",
        &GOOD[..GOOD.len() - 1],
        // A domain that is no text.
        b"\x0a\x02\xff\xfe\x12\x08\x0a\x06\x0a\x01k\x12\x01v",
        // A number where there should be a text.
        b"\x08\x01",
        // Longer than can be, by what it says of itself.
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01d",
        &[0x0b; 2000],
    ] {
        let refusal = raw(&scene, METHOD, bytes, json!({})).expect_err("it is no message");
        assert_eq!(refusal.code, "INVALID_ARGUMENT", "{bytes:?}: {refusal:?}");
    }
    let empty = raw(&scene, METHOD, b"", json!({})).expect_err("there is no domain");
    assert_eq!(empty.code, "INVALID_ARGUMENT", "{empty:?}");
    assert_eq!(scene.left("d", &[("k", "v")]), left);
    goes_on(&scene);
}

/// Whoever is newer than we are says more, and is understood.
#[test]
fn fields_nobody_knows_are_passed_over() {
    let scene = Scene::start(YAML, &[]);
    raw(&scene, METHOD, &[GOOD, b"\xa2\x06\x03new"].concat(), json!({})).unwrap();
    assert_eq!(scene.left("d", &[("k", "v")]), 999);
}

#[test]
fn methods_and_services_that_are_not_there() {
    let scene = Scene::start(YAML, &[]);
    for method in [
        "/envoy.service.ratelimit.v3.RateLimitService/ShouldNot",
        "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit",
        "/envoy.service.ratelimit.v3.ratelimitservice/shouldratelimit",
        "/nothing.of.the.Kind/Here",
        "/",
    ] {
        let refusal = raw(&scene, method, GOOD, json!({})).expect_err(method);
        assert_eq!(refusal.code, "UNIMPLEMENTED", "{method}: {refusal:?}");
    }
    assert_eq!(scene.left("d", &[("k", "v")]), 1000);
    goes_on(&scene);
}

#[test]
fn a_compressed_message_is_not_read() {
    let scene = Scene::start(YAML, &[]);
    // Long enough that it becomes shorter; else it is sent as it is.
    let filler = [&b"\xa2\x06\x80\x08"[..], &[b'x'; 1024]].concat();
    let long = [GOOD, &filler].concat();
    raw(&scene, METHOD, &long, json!({})).unwrap();
    let refusal = raw(&scene, METHOD, &long, json!({"compression": "gzip"})).expect_err("gzip");
    assert_eq!(refusal.code, "UNIMPLEMENTED", "{refusal:?}");
    assert_eq!(scene.left("d", &[("k", "v")]), 999);
    goes_on(&scene);
}

#[test]
fn a_message_that_is_too_long() {
    let scene = Scene::start(YAML, &[]);
    for length in [64 * 1024 + 1, 1 << 20, 8 << 20] {
        let refusal = raw(&scene, METHOD, &vec![0x0a; length], json!({})).expect_err("too long");
        assert_eq!(refusal.code, "RESOURCE_EXHAUSTED", "{length}: {refusal:?}");
    }
    goes_on(&scene);
}

#[test]
fn metadata_changes_nothing() {
    let scene = Scene::start(YAML, &[]);
    let metadata = json!({"metadata": [
        ["x-request-id", "17"],
        ["authorization", "Bearer nonsense"],
        ["user-agent-of-ours", "v".repeat(4000)],
    ]});
    raw(&scene, METHOD, GOOD, metadata).unwrap();
    assert_eq!(scene.left("d", &[("k", "v")]), 999);
}

/// What it says to bytes that are not HTTP/2, until it closes.
fn told(scene: &Scene, bytes: &[u8]) {
    let mut stream = TcpStream::connect(scene.grpc).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("it does not close: {error}"),
    }
}

#[test]
fn whoever_does_not_speak_http_2_is_sent_away() {
    let scene = Scene::start(YAML, &[]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    told(&scene, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    told(&scene, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    told(&scene, &[0xff; 4096]);
    told(&scene, b"");
    told(&scene, preface);
    told(&scene, &[&preface[..], &[0xff; 4096]].concat());
    // A frame for a stream that cannot be, and headers that cannot be read.
    told(
        &scene,
        &[&preface[..], b"\0\0\0\x04\0\0\0\0\0\0\0\x04\x01\x05\0\0\0\0\xff\xff\xff\xff"].concat(),
    );
    goes_on(&scene);
}

/// Whoever does not wait for an answer is told that it is too late, and leaves nothing behind.
#[test]
fn a_deadline_that_is_over_is_over() {
    let scene = Scene::start(YAML, &[]);
    goes_on(&scene);
    let process = scene.service.process();
    signal(process, "STOP");
    await_stopped(process, true);
    let asked = request("d", &[descriptor(&[("k", "v")])]);
    let to = scene.grpc.to_string();
    let answer = call(json!({"op": "limit", "to": to, "request": asked, "deadline": 0.2}));
    signal(process, "CONT");
    assert_eq!(answer["error"]["code"], "DEADLINE_EXCEEDED", "{answer}");
    goes_on(&scene);
}
