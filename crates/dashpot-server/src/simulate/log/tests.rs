use super::*;

/// When, who, what, and what came of it.
fn told(line: &str) -> (u64, String, String, Option<u16>, Option<u64>) {
    let entry = read(line).unwrap_or_else(|wrong| panic!("{wrong}: {line}"));
    let (request, _) = entry.request.build().unwrap_or_else(|_| panic!("{line}"));
    let what = format!("{} {}", request.method(), request.uri());
    let who = entry.request.ip.map(|ip| ip.to_string()).unwrap_or_default();
    (entry.at, who, what, entry.status, entry.bytes)
}

const AT: u64 = 1_795_000_000_000_000_000;

fn right(line: &str) {
    let what = "GET /a?b=c".to_owned();
    assert_eq!(told(line), (AT, "203.0.113.7".to_owned(), what, Some(200), Some(42)), "{line}");
}

#[test]
fn the_same_request_in_every_form() {
    for line in [
        // Common, combined, with a host in front, with what nginx's `main` has behind.
        r#"203.0.113.7 - - [18/Nov/2026:11:06:40 +0000] "GET /a?b=c HTTP/1.1" 200 42"#,
        r#"203.0.113.7 - alice [18/Nov/2026:12:06:40 +0100] "GET /a?b=c HTTP/1.1" 200 42 "-" "curl/8""#,
        r#"example.com:80 203.0.113.7 - - [18/Nov/2026:11:06:40 +0000] "GET /a?b=c HTTP/1.1" 200 42"#,
        r#"203.0.113.7 - - [18/Nov/2026:11:06:40 +0000] "GET http://example.com/a?b=c HTTP/1.1" 200 42 "-" "a" "-""#,
        // The gateway's own, for people and machines.
        "2026-11-18T11:06:40.000Z 203.0.113.7 GET /a?b=c HTTP/1.1 200 42 0.0012",
        r#"{"time":"2026-11-18T11:06:40.000Z","ip":"203.0.113.7","method":"GET","path":"/a?b=c","status":200,"bytes":42,"seconds":0.1}"#,
        // nginx, Caddy, Traefik, Envoy.
        r#"{"msec":"1795000000.000","remote_addr":"203.0.113.7","request":"GET /a?b=c HTTP/1.1","status":"200","body_bytes_sent":"42"}"#,
        r#"{"ts":1795000000.0,"request":{"remote_ip":"203.0.113.7","method":"GET","uri":"/a?b=c","host":"x","headers":{"User-Agent":["a"]}},"status":200,"size":42,"duration":0.1}"#,
        r#"{"StartUTC":"2026-11-18T11:06:40Z","ClientHost":"203.0.113.7","RequestMethod":"GET","RequestPath":"/a?b=c","DownstreamStatus":200,"DownstreamContentSize":42}"#,
        r#"{"start_time":"2026-11-18T11:06:40.000Z","downstream_remote_address":"203.0.113.7:4711","method":"GET","path":"/a?b=c","response_code":200,"bytes_sent":42}"#,
        r#"{"timestamp":1795000000000,"client_ip":"203.0.113.7","method":"GET","uri":"/a?b=c","status":200,"bytes":42}"#,
    ] {
        right(line);
    }
}

#[test]
fn who_it_was_and_what_was_said() {
    let line = r#"2001:db8::1 - alice [18/Nov/2026:11:06:40 +0000] "POST /x HTTP/2.0" 401 - "-" "a \"b\" \x22c\x22""#;
    let entry = read(line).unwrap();
    assert_eq!(entry.request.user.as_deref(), Some("alice"));
    let (request, _) = entry.request.build().ok().unwrap();
    assert_eq!(request.headers()["user-agent"], r#"a "b" "c""#);
    assert!(!request.headers().contains_key("referer"));
    assert_eq!((entry.status, entry.bytes), (Some(401), None));
}

#[test]
fn what_cannot_be_read_says_why() {
    for (line, why) in [
        ("", "no time in brackets"),
        ("hello world", "no time in brackets"),
        (r#"203.0.113.7 - - [yesterday] "GET / HTTP/1.1" 200 1"#, "`yesterday` is no time"),
        (r#"host.example - - [18/Nov/2026:11:06:40 +0000] "GET / HTTP/1.1" 200 1"#, "no address"),
        (r#"203.0.113.7 - - [18/Nov/2026:11:06:40 +0000] "\x16\x03\x01" 400 1"#, "is no request"),
        (r#"203.0.113.7 - - [18/Nov/2026:11:06:40 +0000] "GET / HTTP/1.1"#, "no request in quotes"),
        ("{}", "no time"),
        (r#"{"time":1795000000}"#, "neither `path`"),
        ("{", "no JSON"),
        ("2026-11-18T11:06:40.000Z 203.0.113.7 GET", "8 words"),
    ] {
        let wrong = read(line).err().unwrap_or_else(|| panic!("{line} can be read"));
        assert!(wrong.contains(why), "{line}: {wrong}");
    }
}

/// Logs come from strangers: whatever they wrote, it does no more than be left out.
#[test]
fn no_line_does_harm() {
    let whole =
        r#"203.0.113.7 - é [18/Nov/2026:11:06:40 +0000] "GET /\xé\" HTTP/1.1" 200 42 "\x" "ü"#;
    for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        for begin in (0..end).filter(|begin| whole.is_char_boundary(*begin)) {
            let _ = read(&whole[begin..end]);
        }
    }
    for number in ["1e400", "-1", "1e18", "99999999999999999999", "0"] {
        let _ = read(&format!(
            r#"{{"time":{number},"path":"/","status":{number},"seconds":{number}}}"#
        ));
    }
}
