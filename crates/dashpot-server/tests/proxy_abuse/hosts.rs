//! Hosts: one, and one that is a host.

use crate::cases::{Case, Scene, all, case};

fn asked(what: impl Into<String>, target: &str, lines: &str) -> Case {
    case(what, format!("GET {target} HTTP/1.1\r\n{lines}\r\n"))
}

#[test]
fn none_or_two_are_refused() {
    all(vec![
        asked("none", "/a", "").refused(),
        asked("none, but others", "/a", "X-Host: a\r\nX-Forwarded-Host: a\r\n").refused(),
        asked("two", "/a", "Host: a.example\r\nHost: b.example\r\n").refused(),
        asked("the same twice", "/a", "Host: a.example\r\nHost: a.example\r\n").refused(),
        asked("in other letters", "/a", "host: a.example\r\nHOST: b.example\r\n").refused(),
        asked("far apart", "/a", "Host: a.example\r\nX: y\r\nHost: b.example\r\n").refused(),
        asked("one of them empty", "/a", "Host: a.example\r\nHost:\r\n").refused(),
        asked("folded", "/a", "Host: a.example\r\n b.example\r\n").refused(),
        asked("folded away", "/a", "Host:\r\n a.example\r\n").refused(),
        asked("a blank before the colon", "/a", "Host : a.example\r\n").refused(),
        asked("two, and a host before the path", "http://c.example/a", "Host: a\r\nHost: b\r\n")
            .refused(),
        asked("none, and a host before the path", "http://c.example/a", "")
            .refused()
            .passed(&["GET /a"]),
    ]);
}

#[test]
fn what_is_not_a_host_is_refused() {
    let not = [
        "a.example b.example",
        "a.example\tb.example",
        "a.example/path",
        "/",
        "user@a.example",
        "user:password@a.example",
        "@a.example",
        "a.example, b.example",
        "a.example,b.example",
        "a.example?b",
        "a.example#b",
        "a.example\\b",
        "http://a.example",
        "a.example:x",
        "a.example:80:80",
        "a.example:-1",
        "[::1",
        "::1]",
        "[::1]x",
        "[x]",
        "a\0b",
        "a\x7fb",
        "a\x01b",
        "<a.example>",
        "a.example\"",
        "a|b",
        "{a}",
        "a^b",
        "\u{ff41}.example",
    ];
    all(not.map(|host| asked(host, "/a", &format!("Host: {host}\r\n")).refused()).into());
}

#[test]
fn hosts_are_hosts_however_they_are_written() {
    let hosts = [
        "a.example",
        "a.example:80",
        "A.EXAMPLE:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:80",
    ];
    let mut cases: Vec<_> = hosts
        .iter()
        .map(|host| asked(*host, "/a", &format!("Host: {host}\r\n")).passed(&["GET /a"]))
        .collect();
    // Not what anybody should send, and harmless if it is passed on as it came.
    for host in
        ["", ":80", "a_b.example", "a.example.", "xn--nxasmq6b", "a.example:", "a.example:99999"]
    {
        let case = asked(host, "/a", &format!("Host: {host}\r\n"));
        cases.push(case.refused().passed(&["GET /a"]));
    }
    all(cases);
}

#[test]
fn the_request_line_may_name_one_and_nothing_beside_it() {
    let host = "Host: a.example\r\n";
    all(vec![
        asked("another", "http://b.example/a", host).passed(&["GET /a"]),
        asked("no path", "http://b.example", host).passed(&["GET /"]),
        asked("a query alone", "http://b.example?x=1", host).refused().passed(&["GET /?x=1"]),
        asked("a user", "http://user@b.example/a", host).refused().passed(&["GET /a"]),
        asked("a password", "http://user:pass@b.example/a", host).refused().passed(&["GET /a"]),
        asked("nobody", "http:///a", host).refused(),
        asked("no slashes", "http:/a", host).refused(),
        asked("a blank", "http://b.example /a", host).refused(),
        asked("a port that is none", "http://b.example:x/a", host).refused(),
        asked("two users", "http://b@c@d/a", host).refused(),
        asked("no slash at all", "a", host).refused(),
        asked("a host alone", "b.example:80", host).refused(),
        asked("a path that looks like one", "//b.example/a", host)
            .refused()
            .passed(&["GET //b.example/a"]),
        asked("a path with one in it", "/http://b.example/a", host)
            .passed(&["GET /http://b.example/a"]),
    ]);
}

/// The fields that the backend gets with this, a line for each.
fn fields(scene: &Scene, bytes: &str) -> Vec<String> {
    let told = scene.gateway.caller().ask(bytes).unwrap();
    assert_eq!(told.status(), 200, "{bytes}: {told:?}");
    told.text().lines().map(str::to_owned).collect()
}

#[test]
fn the_backend_is_told_one_host_the_one_that_counts() {
    let scene = Scene::start();
    for (bytes, host) in [
        ("GET /fields HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "host: a.example:81"),
        ("GET http://b.example/fields HTTP/1.1\r\nHost: a.example\r\n\r\n", "host: b.example"),
        ("GET http://b.example:82/fields HTTP/1.1\r\nHost: a\r\n\r\n", "host: b.example:82"),
        (
            "GET http://b.example/fields HTTP/1.1\r\nHost: a\r\nConnection: host\r\n\r\n",
            "host: b.example",
        ),
    ] {
        let got = fields(&scene, bytes);
        let hosts: Vec<_> = got.iter().filter(|line| line.starts_with("host:")).collect();
        assert_eq!(hosts, [host], "{bytes:?}");
    }
}

/// Whoever names what the gateway says of them as a matter between two neighbours does not get rid
/// of it.
#[test]
fn nobody_hides_by_naming_what_is_said_of_them() {
    let scene = Scene::start();
    for name in ["x-forwarded-for", "X-Forwarded-Host, X-Forwarded-Proto, X-Real-IP", "host"] {
        let lines = format!("Host: a.example\r\nConnection: {name}, X-Forwarded-For\r\n");
        let got = fields(&scene, &format!("GET /fields HTTP/1.1\r\n{lines}X-Other: 1\r\n\r\n"));
        for line in [
            "host: a.example",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: a.example",
            "x-forwarded-proto: http",
            "x-real-ip: 127.0.0.1",
            "x-other: 1",
        ] {
            assert!(got.iter().any(|had| had == line), "{name}: no {line} in {got:?}");
        }
        assert!(!got.iter().any(|line| line.starts_with("connection: x-")), "{got:?}");
    }
}
