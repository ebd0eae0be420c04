//! Nobody writes into the access log what is not meant to be there.

use dashpot_testkit::process::until;
use serde_json::Value;

use crate::access_log::{lines, parts};
use crate::backend::Backend;
use crate::caller::PATIENCE;
use crate::proxy::Proxy;

/// Bytes in a path are no line of their own, no other field, and no end of a text.
#[test]
fn nobody_forges_a_line() {
    let backend = Backend::start();
    let forged = "2026-11-16T09:00:00.123Z 203.0.113.7 GET /admin HTTP/1.1 200 1 0.1";
    let paths: Vec<Vec<u8>> = vec![
        format!("/a%0A{}", forged.replace(' ', "%20")).into_bytes(),
        format!("/a%0D%0A{}", forged.replace(' ', "%20")).into_bytes(),
        b"/\"}\",{\"time\":\"x".to_vec(),
        b"/a\\nb\\".to_vec(),
        b"/\xE2\x80\xA8b".to_vec(),
        b"/\xFF\xFE\xC2\x85b".to_vec(),
        b"/a%1B[31m".to_vec(),
        b"/a\x1B[31mb".to_vec(),
        b"/a\x0Bb\x0C".to_vec(),
        b"/a\rb".to_vec(),
        b"/a\tb".to_vec(),
        b"/a\x00b".to_vec(),
    ];
    for format in ["text", "json"] {
        let flags = ["--access-log", "log", "--log-format", format];
        let proxy = Proxy::start(&backend, &flags);
        for path in &paths {
            let mut caller = proxy.caller();
            let head = [b"GET ", &path[..], b" HTTP/1.1\r\nhost: localhost\r\n\r\n"].concat();
            caller.send(head);
            // Some of them are no paths. Then they are refused, and whether there is a line is another matter.
            let answer = caller.try_answer("GET");
            assert!(answer.is_ok_and(|answer| [200, 400].contains(&answer.status)), "{path:?}");
        }
        proxy.get("/last");
        until("the last line", PATIENCE, || proxy.home.read("log").contains("/last").then_some(()));
        let log = std::fs::read(proxy.home.file("log")).unwrap();
        let log = String::from_utf8(log).unwrap();
        let is_plain =
            |c: char| c == '\n' || !c.is_control() || (format == "json" && !c.is_ascii());
        assert!(log.chars().all(is_plain), "{log:?}");
        assert!(log.lines().count() <= paths.len() + 1, "{log}");
        for line in log.lines() {
            match format {
                "json" => {
                    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["ip"], "127.0.0.1")
                }
                _ => assert_eq!(parts(line)[0], "127.0.0.1", "{log}"),
            }
        }
        assert!(log.contains("/a%0A2026"), "as it came: {log}");
    }
}

/// Whatever is asked, those who cut a line at its blanks find all of it in its place.
#[test]
fn no_field_is_ever_empty() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--access-log", "log"]);
    let heads = [
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: example.com\r\n\r\n",
        "GET http://example.com HTTP/1.1\r\nhost: example.com\r\n\r\n",
        "GET /? HTTP/1.1\r\nhost: example.com\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    ];
    for head in heads {
        proxy.caller().try_answer_to(head).unwrap();
    }
    for line in lines(&proxy, heads.len()) {
        let fields = parts(&line);
        assert!(fields.iter().all(|field| !field.is_empty()), "{line:?}");
    }
}
