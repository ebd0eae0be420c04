//! What is wrong before the question is even read, and what that does to the connection.

use crate::support::{Client, Server};

const GOOD: &[u8] = b"{\"key\":\"alice\",\"limit\":\"5/h\",\"cost\":0}";

/// The connection is as good as before.
#[track_caller]
fn still_good(client: &mut Client) {
    assert_eq!(client.ask("POST", "/v1/check", &[], GOOD).allowed().remaining(), 5);
}

#[test]
fn bodies_that_are_no_json() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let deep = |open: &str| open.repeat(10_000);
    let bodies: Vec<Vec<u8>> = [
        "",
        " ",
        "{",
        "}",
        "nonsense",
        "{'key':'alice'}",
        "{\"key\":\"alice\",}",
        "{\"key\":}",
        "{\"key\":\"alice\",\"limit\":\"5/h\"} x",
        "{\"key\":\"alice\",\"limit\":\"5/h\"}{}",
        "{\"key\":\"alice\",\"limit\":\"5/h\"}]",
        "{\"key\":\"alice\",\"key\":\"b\",\"limit\":\"5/h\"}",
        "{\"key\":\"\\ud800\",\"limit\":\"5/h\"}",
        "{\"key\":\"a\nb\",\"limit\":\"5/h\"}",
        "key=alice&limit=5/h",
        "\u{feff}{\"key\":\"alice\",\"limit\":\"5/h\"}",
        "{\"key\":\"alice\",\"limit\":\"5/h\",\"cost\":NaN}",
        "{\"key\":\"alice\",\"limit\":\"5/h\",\"cost\":01}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([
        b"{\"key\":\"\xff\",\"limit\":\"5/h\"}".to_vec(),
        b"{\"key\":\"al\0ice\",\"limit\":\"5/h\"}".to_vec(),
        deep("[").into_bytes(),
        deep("{\"a\":").into_bytes(),
        format!("{{\"checks\":{}{}}}", deep("["), deep("]")).into_bytes(),
        format!("{{\"request\":{{\"headers\":{{\"x\":{}{}}}}}}}", deep("["), deep("]"))
            .into_bytes(),
        format!("{{\"colour\":{}{}}}", deep("["), deep("]")).into_bytes(),
    ])
    .collect();
    let mut nowhere = Vec::new();
    for body in &bodies {
        for path in ["/v1/check", "/v1/settle", "/v1/keys/peek", "/v1/rules/explain"] {
            let answer = client.ask("POST", path, &[], body).problem(400);
            if ["?", ".", ""].iter().any(|field| answer.json()["field"] == *field) {
                let begins = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
                nowhere.push(format!("{path} {begins}: {answer:?}"));
            }
        }
    }
    assert!(nowhere.is_empty(), "that is no place: {}", nowhere.join("\n\n"));
    still_good(&mut client);
}

#[test]
fn a_body_has_at_most_64_kib() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let of = |length: usize| [GOOD, &vec![b' '; length - GOOD.len()]].concat();
    client.ask("POST", "/v1/check", &[], &of(64 * 1024)).allowed();
    client.ask("POST", "/v1/check", &[], &of(64 * 1024 + 1)).problem(413);
    for path in ["/v1/check", "/v1/settle", "/v1/keys/peek", "/v1/rules/explain"] {
        server.client().ask("POST", path, &[], &of(200_000)).problem(413);
    }
    still_good(&mut server.client());
}

#[test]
fn a_long_body_in_chunks_is_too_long_as_well() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let head = "POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    // Two chunks that are good together: chunks are read.
    let (first, second) = GOOD.split_at(7);
    client.send(head.as_bytes());
    for part in [first, second, b""] {
        client.send(&[format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat());
    }
    client.answer(false).allowed();
    let mut client = server.client();
    client.send(head.as_bytes());
    for _ in 0..9 {
        client.send(&[b"2000\r\n", [b' '; 0x2000].as_slice(), b"\r\n"].concat());
    }
    client.answer(false).problem(413);
    still_good(&mut server.client());
}

#[test]
fn a_length_that_is_announced_too_long_is_refused_before_it_is_sent() {
    let server = Server::start(&[]);
    let mut client = server.client();
    client.send(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    client.answer(false).problem(413);
    let mut client = server.client();
    client.send(
        b"POST /v1/check HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 999999\r\n\r\n",
    );
    client.answer(false).problem(413);
}

#[test]
fn compressed_bodies_are_not_taken() {
    let server = Server::start(&[]);
    for coding in ["gzip", "br", "deflate", "zstd", "GZIP", "gzip, identity"] {
        let mut client = server.client();
        let headers = [("Content-Encoding", coding)];
        client.ask("POST", "/v1/check", &headers, b"\x1f\x8b\x08\0").problem(415);
        client.ask("POST", "/v1/settle", &headers, b"\x1f\x8b\x08\0").problem(415);
        still_good(&mut client);
    }
    let identity = [("Content-Encoding", "identity")];
    server.client().ask("POST", "/v1/check", &identity, GOOD).allowed();
}

#[test]
fn any_content_type_will_do_since_curl_sends_another() {
    let server = Server::start(&[]);
    for kind in ["application/json", "application/x-www-form-urlencoded", "text/plain"] {
        server.client().ask("POST", "/v1/check", &[("Content-Type", kind)], GOOD).allowed();
    }
}

#[test]
fn another_method_is_told_which() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for path in [
        "/v1/check",
        "/v1/settle",
        "/v1/keys/peek",
        "/v1/keys/reset",
        "/v1/keys/block",
        "/v1/keys/unblock",
        "/v1/rules/reload",
        "/v1/rules/diff",
        "/v1/rules/explain",
    ] {
        for method in ["GET", "PUT", "DELETE", "PATCH", "BREW"] {
            let answer = client.ask(method, path, &[], b"").problem(405);
            assert_eq!(answer.header("allow"), Some("POST"), "{method} {path}: {answer:?}");
        }
        let head = client.ask("HEAD", path, &[], b"").is(405);
        assert_eq!(head.header("allow"), Some("POST"), "{path}: {head:?}");
    }
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/v1/keys/top",
        "/v1/rules",
        "/v1/health",
    ] {
        for method in ["POST", "PUT", "DELETE"] {
            // That is how it is told how the service is.
            if (method, path) == ("POST", "/v1/health") {
                continue;
            }
            let answer = client.ask(method, path, &[], b"{}").problem(405);
            let allow = answer.header("allow").unwrap();
            for wanted in ["GET", "HEAD"] {
                assert!(allow.split(", ").any(|m| m == wanted), "{method} {path}: {answer:?}");
            }
        }
        let get = client.get(path).is(200);
        let head = client.ask("HEAD", path, &[], b"").is(200);
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
        assert!(head.header("content-length").is_some(), "{path}: {head:?}");
    }
    still_good(&mut client);
}

#[test]
fn another_path_is_not_found() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for path in [
        "/v1",
        "/v1/",
        "/v1/check/",
        "/V1/check",
        "/v1/checks",
        "//v1/check",
        "/v1/%63heck",
        "/v1/keys",
        "/v1/keys/",
        "/v1/keys/peek/x",
        "/v1/rules/",
        "/v2/check",
        "/metrics/",
        "/healthz/x",
        "/favicon.ico",
        "/v1/forward-authority",
        "/v1/../v1/check",
    ] {
        client.ask("POST", path, &[], GOOD).problem(404);
        client.get(path).problem(404);
        client.ask("HEAD", path, &[], b"").is(404);
    }
    still_good(&mut client);
}

#[test]
fn a_query_on_a_path_without_parameters_does_no_harm() {
    let server = Server::start(&[]);
    server.client().ask("POST", "/v1/check?x=1", &[], GOOD).allowed();
    server.get("/healthz?x").is(200);
}

#[test]
fn what_is_no_http_is_refused_and_harms_nobody() {
    let server = Server::start(&[]);
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"nonsense\r\n\r\n",
        b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
    ] {
        let mut client = server.client();
        client.send(bytes);
        if !client.hung_up() {
            client.answer(false).is(400);
        }
    }
    let mut client = server.client();
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(1_000_000));
    client.send(long.as_bytes());
    if !client.hung_up() {
        assert!((400..500).contains(&client.answer(false).status));
    }
    still_good(&mut server.client());
}
