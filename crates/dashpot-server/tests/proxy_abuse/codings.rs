//! `Transfer-Encoding`, in all the ways that somebody in a row of readers might miss.

use crate::cases::{Case, all, case};

const HEAD: &str = "POST /a HTTP/1.1\r\nHost: a.example\r\n";
const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX: ";

/// With these lines, and a body of chunks.
fn chunked(what: &str, lines: &str) -> Case {
    case(what, format!("{HEAD}{lines}\r\n5\r\nhello\r\n0\r\n\r\n"))
}

#[test]
fn beside_a_length_chunks_count_and_then_it_is_over() {
    let coding = "Transfer-Encoding: chunked\r\n";
    let hidden = format!("0\r\n\r\n{HIDDEN}");
    let length = format!("Content-Length: {}\r\n", hidden.len());
    let mut cases = Vec::new();
    for lines in [
        format!("{length}{coding}"),
        format!("{coding}{length}"),
        format!("{coding}{length}").to_lowercase(),
        format!("{length}{coding}").to_uppercase(),
        format!("{length}X: y\r\n{coding}"),
        format!("{length}{coding}Connection: keep-alive\r\n"),
        format!("{length}{coding}Connection: content-length\r\n"),
    ] {
        let bytes = format!("{HEAD}{lines}\r\n{hidden}");
        let case = case(format!("the rest of the length: {lines:?}"), bytes);
        cases.push(case.passed_and_closed(&["POST /a"]));
    }
    for short in ["0", "3", "5", "15"] {
        let lines = format!("Content-Length: {short}\r\n{coding}");
        cases.push(
            chunked(&format!("{short} beside chunks"), &lines)
                .passed_and_closed(&["POST /a hello"]),
        );
    }
    all(cases);
}

#[test]
fn beside_a_length_that_is_none_it_is_refused() {
    let coding = "Transfer-Encoding: chunked\r\n";
    let lines = ["-1", "+5", "x", "5, 6", ""];
    let cases = lines
        .map(|value| chunked(value, &format!("Content-Length: {value}\r\n{coding}")).refused());
    let two = format!("Content-Length: 5\r\nContent-Length: 6\r\n{coding}");
    let two = chunked("two lengths", &two).refused();
    all(cases.into_iter().chain([two]).collect());
}

/// The rest of the bytes is a request, for whoever does not see the chunks.
#[test]
fn a_coding_that_does_not_end_in_chunked_is_refused() {
    let codings = [
        "xchunked",
        "chunkedx",
        "chunke",
        "identity",
        "gzip",
        "chunked, identity",
        "chunked,gzip",
        "chunked;q=1",
        "chunked, ;",
        "\"chunked\"",
        "chunked identity",
        "x chunked",
        "chun\u{212a}ed",
        "c\u{202e}hunked",
        "",
        " ",
    ];
    let mut cases = Vec::new();
    for coding in codings {
        let line = format!("Transfer-Encoding: {coding}\r\n");
        cases.push(chunked(coding, &line).refused());
        let hidden = format!("0\r\n\r\n{HIDDEN}");
        let length = hidden.len();
        let bytes = format!("{HEAD}{line}Content-Length: {length}\r\n\r\n{hidden}");
        cases.push(case(format!("{coding} beside a length"), bytes).refused());
    }
    all(cases);
}

#[test]
fn two_codings_are_not_one() {
    let (chunks, identity) = ("Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n");
    let once = &["POST /a hello"];
    all(vec![
        chunked("chunked, then identity", &format!("{chunks}{identity}")).refused(),
        chunked("chunked, then nonsense", &format!("{chunks}Transfer-Encoding: x\r\n")).refused(),
        chunked("chunked, then something else", &format!("{chunks}X: y\r\n{identity}")).refused(),
        // These end in chunked. Whoever passes them on says chunked, and that once.
        chunked("identity, then chunked", &format!("{identity}{chunks}")).refused().passed(once),
        chunked("chunked twice", &format!("{chunks}{chunks}")).refused().passed(once),
        chunked("in one", "Transfer-Encoding: chunked, chunked\r\n").refused().passed(once),
        chunked("an empty one first", "Transfer-Encoding: , chunked\r\n").refused().passed(once),
        chunked("an empty one last", "Transfer-Encoding: chunked,\r\n").refused().passed(once),
    ]);
}

#[test]
fn bytes_around_it_do_not_hide_it() {
    let lines = [
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "\tTransfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked\r\n , identity",
        "Transfer-Encoding\r\n : chunked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: chunked\x0b",
        "Transfer-Encoding: \x0cchunked",
        "Transfer-Encoding: \0chunked",
        "Transfer-Encoding: chunked\0",
        "Transfer-Encoding: \x7fchunked",
        "Transfer-Encoding\0: chunked",
        "\x0bTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer-Encoding: \rchunked",
        "\rTransfer-Encoding: chunked",
        "Transfer-Encoding:chunked\r",
        "Transfer(Encoding): chunked",
        "Transfer Encoding: chunked",
        "Transfer-Encoding\u{a0}: chunked",
    ];
    let mut cases: Vec<_> =
        lines.iter().map(|line| chunked(line, &format!("{line}\r\n")).refused()).collect();
    cases.push(chunked("a byte above", "Transfer-Encoding: \u{a0}chunked\r\n").refused());
    let fed = chunked("a line feed before", "X: y\nTransfer-Encoding: chunked\r\n");
    cases.push(fed.refused().passed(&["POST /a hello"]));
    all(cases);
}

#[test]
fn chunks_are_chunks_however_it_is_written() {
    let once = &["POST /a hello"];
    all(vec![
        chunked("small letters", "transfer-encoding: chunked\r\n").passed(once),
        chunked("large letters", "TRANSFER-ENCODING: CHUNKED\r\n").passed(once),
        chunked("no blank", "Transfer-Encoding:chunked\r\n").passed(once),
        chunked("a tab", "Transfer-Encoding:\tchunked\r\n").passed(once),
        chunked("blanks after", "Transfer-Encoding: chunked \t\r\n").passed(once),
        chunked(
            "named by Connection",
            "Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n",
        )
        .refused()
        .passed(once),
    ]);
}

#[test]
fn http_1_0_has_no_codings() {
    let old = |what: &str, lines: &str| {
        let head = format!("POST /a HTTP/1.0\r\nHost: a.example\r\n{lines}\r\n");
        case(what, format!("{head}5\r\nhello\r\n0\r\n\r\n"))
    };
    let coding = "Transfer-Encoding: chunked\r\n";
    all(vec![
        old("alone", coding).refused(),
        old("kept", &format!("Connection: keep-alive\r\n{coding}")).refused(),
        old("beside a length", &format!("Content-Length: 5\r\n{coding}")).refused(),
        old("identity", "Transfer-Encoding: identity\r\nContent-Length: 15\r\n").refused(),
        case("a length", "POST /a HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello")
            .passed_and_closed(&["POST /a hello"]),
        case("no host", "GET /a HTTP/1.0\r\n\r\n").passed_and_closed(&["GET /a"]),
        case("kept", "GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
            .passed(&["GET /a"])
            .passed_and_closed(&["GET /a"]),
    ]);
}
