//! Lengths that two readers could take for different ones.

use crate::cases::{Case, all, case, cut};

/// A request with these lines, a body of five, and one that hides behind it.
fn five(what: &str, lines: &str) -> Case {
    case(what, format!("POST /a HTTP/1.1\r\nHost: a.example\r\n{lines}\r\nhello"))
}

#[test]
fn a_length_that_is_not_a_number_is_refused() {
    let not = [
        "+5", "-5", "-1", "0x5", "5.0", "5e0", "five", "", " ", "5 5", "5;5", "\"5\"", "5\x0b",
        "\x0c5", "\u{665}", "5_0", "5,", ",5", "5 , 0",
    ];
    let cases = not.iter().map(|value| {
        let case = five(value, &format!("Content-Length: {value}\r\n"));
        match *value {
            // Lists with nothing beside the number, which some read as that.
            "5," | ",5" => case.refused().passed(&["POST /a hello"]),
            _ => case.refused(),
        }
    });
    all(cases.collect());
}

#[test]
fn a_length_beyond_all_bounds_is_refused() {
    let beyond = [
        "100001",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        // Five more than 64 bits can hold.
        "18446744073709551621",
        "99999999999999999999999999999999999999999999999999",
    ];
    let too_much = |value: &&str| {
        five(value, &format!("Content-Length: {value}\r\n")).refused_with(&[400, 413, 431])
    };
    all(beyond.iter().map(too_much).collect());
}

#[test]
fn two_lengths_are_refused_unless_they_are_the_same() {
    let (five_, six) = ("Content-Length: 5\r\n", "Content-Length: 6\r\n");
    let once = &["POST /a hello"];
    all(vec![
        five("five, then six", &format!("{five_}{six}")).refused(),
        five("six, then five", &format!("{six}{five_}")).refused(),
        five("five, then none", &format!("{five_}Content-Length: 0\r\n")).refused(),
        five("far apart", &format!("{five_}X: y\r\ncontent-LENGTH: 0\r\n")).refused(),
        five("five, then nonsense", &format!("{five_}Content-Length: x\r\n")).refused(),
        five("in one", "Content-Length: 5, 6\r\n").refused(),
        five("in one, and none", "Content-Length: 5,0\r\n").refused(),
        five("the same twice", &format!("{five_}{five_}")).refused().passed(once),
        five("the same in one", "Content-Length: 5, 5\r\n").refused().passed(once),
        five("the same, written otherwise", &format!("{five_}Content-Length: 05\r\n"))
            .refused()
            .passed(once),
    ]);
}

#[test]
fn a_length_is_a_length_however_it_is_written() {
    let once = &["POST /a hello"];
    all(vec![
        five("small letters", "content-length: 5\r\n").passed(once),
        five("large letters", "CONTENT-LENGTH: 5\r\n").passed(once),
        five("no blank", "Content-Length:5\r\n").passed(once),
        five("blanks", "Content-Length: \t 5 \t \r\n").passed(once),
        five("zeros", "Content-Length: 0000000005\r\n").refused().passed(once),
        case("no body at all", "POST /a HTTP/1.1\r\nHost: a\r\n\r\n").passed(&["POST /a"]),
    ]);
}

/// Whoever names it as a matter between two neighbours does not make it disappear.
#[test]
fn no_length_is_taken_away_by_connection() {
    let once = &["POST /a hello"];
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = hidden.len();
    let head = "POST /a HTTP/1.1\r\nHost: a.example\r\n";
    let whole = format!("POST /a {}", hidden.escape_default());
    let hides = |lines: &str| format!("{head}Content-Length: {length}\r\n{lines}\r\n{hidden}");
    all(vec![
        five("before", "Connection: content-length\r\nContent-Length: 5\r\n")
            .refused()
            .passed(once),
        five("after", "Content-Length: 5\r\nConnection: Content-Length\r\n").refused().passed(once),
        case("a request in the body", hides("Connection: content-length\r\n"))
            .refused()
            .passed(&[&whole]),
        case("a request in the body, kept", hides("Connection: keep-alive, Content-Length\r\n"))
            .refused()
            .passed(&[&whole]),
        case("a request in the body, plain", hides("")).passed(&[&whole]),
    ]);
}

#[test]
fn a_body_that_ends_too_early_never_looks_whole() {
    let head = "POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n";
    all(vec![
        cut("some of it", format!("{head}\r\nhello")).broken(),
        cut("none of it", format!("{head}\r\n")).broken(),
        cut("all but one", format!("{head}\r\nhellohell")).broken(),
        cut("with a request in what is there", format!("{head}\r\nGET / HT")).broken(),
        cut("a head without an end", head).broken(),
        // It waits for the rest, and not for ever.
        case("what comes next is the body", head.replace("10", "90000") + "\r\n").broken(),
    ]);
}

#[test]
fn a_body_goes_to_its_own_request_and_no_other() {
    let body = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let with = |method: &str| {
        let length = body.len();
        let head = format!("{method} /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}");
        let bytes = format!("{head}\r\n\r\n{body}GET /b HTTP/1.1\r\nHost: a\r\n\r\n");
        let whole = format!("{method} /a {}", body.escape_default());
        case(method, bytes).passed(&[&whole, "GET /b"])
    };
    all(["GET", "DELETE", "OPTIONS", "PUT", "POST", "PATCH", "X-STRANGE"].map(with).into());
}
