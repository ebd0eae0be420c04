//! Lines and bytes that no head has.

use crate::cases::{Case, all, case};

const GET: &str = "GET /a HTTP/1.1\r\nHost: a.example\r\n";

fn line(line: impl AsRef<[u8]>) -> Case {
    let line = line.as_ref();
    case(line.escape_ascii().to_string(), [GET.as_bytes(), line, b"\r\n\r\n"].concat())
}

#[test]
fn names_are_tokens() {
    let lines = [
        "X : y",
        "X\t: y",
        ": y",
        " : y",
        "X",
        "X y: z",
        "X\0: y",
        "X\x01: y",
        "X\x7f: y",
        "X\x0b: y",
        "(X): y",
        "X,Y: z",
        "X/Y: z",
        "X;Y: z",
        "X=Y: z",
        "X@Y: z",
        "X[0]: z",
        "X{}: z",
        "\"X\": y",
        "X\\Y: z",
        "\u{e9}: y",
        "X\u{a0}: y",
    ];
    all(lines.map(|one| line(one).refused()).into());
}

#[test]
fn values_have_no_control_bytes() {
    let controls = (0..32).chain([127]).filter(|byte| !b"\t\n".contains(byte));
    let within = |byte: u8| line([&b"X: a"[..], &[byte], b"b"].concat()).refused();
    let cases: Vec<_> = controls.map(within).collect();
    all(cases);
}

#[test]
fn folded_lines_are_refused() {
    let lines = [
        "X: a\r\n b",
        "X: a\r\n\tb",
        "X:\r\n a",
        "X: a\r\n  \r\n\tb",
        "X: a\r\n ",
        "X: a\r\n GET /smuggled HTTP/1.1",
        "Content-Length: 0\r\n 5",
        "Connection: keep-alive\r\n , close",
        " X: a",
    ];
    let mut cases: Vec<_> = lines.iter().map(|one| line(one).refused()).collect();
    let first = "GET /a HTTP/1.1\r\n Host: a.example\r\nHost: a.example\r\n\r\n";
    cases.push(case("the first line", first).refused());
    all(cases);
}

/// A reader may take a line feed alone for the end of a line. A return alone is none to anybody.
#[test]
fn other_ends_of_lines_hide_nothing() {
    let once = &["GET /a"];
    all(vec![
        case("line feeds", "GET /a HTTP/1.1\nHost: a.example\n\n").refused().passed(once),
        case("one of them", "GET /a HTTP/1.1\r\nHost: a.example\n\r\n").refused().passed(once),
        case("a header behind one", format!("{GET}X: y\nZ: 1\r\n\r\n")).refused().passed(once),
        case("a request behind two", format!("{GET}X: y\n\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n"))
            .refused()
            .passed(&["GET /a", "GET /b"]),
        case("a host behind one", format!("{GET}X: y\nHost: b.example\r\n\r\n")).refused(),
        case("a length behind one", format!("{GET}X: y\nContent-Length: 5\r\n\r\nhello"))
            .refused()
            .passed(&["GET /a hello"]),
        case("returns", "GET /a HTTP/1.1\rHost: a.example\r\r").refused(),
        case("a return in a value", format!("{GET}X: y\rContent-Length: 5\r\n\r\nhello")).refused(),
        case("two returns", format!("{GET}X: y\r\r\n\r\n")).refused(),
        case("a return before the end", format!("{GET}\r\r\n")).refused(),
        case("a return in the first line", "GET /a\r HTTP/1.1\r\nHost: a\r\n\r\n").refused(),
        case("empty lines first", format!("\r\n\r\n{GET}\r\n")).refused().passed(once),
        case("an empty line between", format!("{GET}\r\n\r\n{GET}\r\n"))
            .passed(&["GET /a", "GET /a"]),
        case("returns first", format!("\r\r\r{GET}\r\n")).refused(),
    ]);
}

#[test]
fn first_lines_that_are_none_are_refused() {
    let not: &[&[u8]] = &[
        b"GET /a b HTTP/1.1",
        b"GET /a HTTP/1.1 HTTP/1.1",
        b"GET /a\0 HTTP/1.1",
        b"GET /a\x01b HTTP/1.1",
        b"GET /a\x7fb HTTP/1.1",
        b"GET /a\x0bb HTTP/1.1",
        b"GET\t/a\tHTTP/1.1",
        b"GET /a",
        b"GET",
        b" GET /a HTTP/1.1",
        b"G(T /a HTTP/1.1",
        b"G\0T /a HTTP/1.1",
        b"G\xc3\xa9T /a HTTP/1.1",
        b"GET: /a HTTP/1.1",
        b"/a HTTP/1.1",
        b"GET HTTP/1.1",
        b"GET  HTTP/1.1",
        b"GET /a HTTP/1.2",
        b"GET /a HTTP/1.",
        b"GET /a HTTP/11.1",
        b"GET /a HTTP/2.0",
        b"GET /a HTTP/0.9",
        b"GET /a http/1.1",
        b"GET /a HTTPS/1.1",
        b"GET /a XTTP/1.1",
        b"GET /a HTTP/1.1x",
        b"GET /a  HTTP/1.1",
        b"GET  /a HTTP/1.1",
        b"GET /a HTTP/1.1 ",
        b"HTTP/1.1 200 OK",
    ];
    let refused = |line: &&[u8]| {
        let bytes = [line, &b"\r\nHost: a.example\r\n\r\n"[..]].concat();
        case(line.escape_ascii().to_string(), bytes).refused_with(&[400, 501, 505])
    };
    all(not.iter().map(refused).collect());
}

#[test]
fn strange_targets_and_methods_stay_what_they_are() {
    let asked = |method: &str, target: &str| {
        let bytes = format!("{method} {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let same = format!("{method} {target}");
        (case(target, bytes), same)
    };
    let mut cases = Vec::new();
    for (method, target) in [
        ("GET", "/a%20b"),
        ("GET", "/a%0d%0aX:%20y"),
        ("GET", "/%2e%2e/a"),
        ("GET", "/a/../b"),
        ("GET", "//a//b/"),
        ("GET", "/a?b=c?d&e;f"),
        ("GET", "/a;b=c"),
        ("get", "/a"),
        ("GETS", "/a"),
        ("X!#$%&'*+-.^_`|~9", "/a"),
    ] {
        let (case, same) = asked(method, target);
        cases.push(case.passed(&[&same]));
    }
    for target in ["/a%zz", "/a%", "/a\\b", "/a|b", "/a{b}", "/a\"b", "/a<b>", "/a^b`", "/\u{e9}"] {
        let (case, same) = asked("GET", target);
        let same = String::from_utf8_lossy(same.as_bytes()).into_owned();
        cases.push(case.refused().passed(&[&same]));
    }
    // What comes after it is for the caller's eyes only.
    let (case, _) = asked("GET", "/a#/../b");
    cases.push(case.refused().passed(&["GET /a"]));
    let (case, _) = asked("GET", "/a#");
    cases.push(case.refused().passed(&["GET /a"]));
    let (case, same) = asked("OPTIONS", "*");
    cases.push(case.passed(&[&same]));
    let (case, same) = asked("GET", "*");
    cases.push(case.refused().passed(&[&same]));
    let (case, _) = asked("CONNECT", "a.example:80");
    cases.push(case.refused_with(&[405]));
    all(cases);
}
