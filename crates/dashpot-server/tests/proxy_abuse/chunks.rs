//! Bodies in chunks, and what is wrong with some of them. A backend may get the beginning of such a
//! body, and never its end.

use crate::cases::{Case, Scene, all, case, cut};

const HEAD: &str =
    "POST /a HTTP/1.1\r\nHost: a.example\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";

fn body(what: impl Into<String>, chunks: &str) -> Case {
    case(what, format!("{HEAD}{chunks}"))
}

#[test]
fn a_size_that_is_none_breaks_the_body_off() {
    let sizes = [
        "0x5",
        "-5",
        "+5",
        "",
        " 5",
        "\t5",
        "5h",
        "g",
        "5 5",
        "5\x0b",
        "5\0",
        "5,",
        "\u{665}",
        "5_0",
        "-0",
        "ffffffffffffffff",
        // Five more than 64 bits can hold.
        "10000000000000005",
        "ffffffffffffffffffffffffffffffff5",
    ];
    let first = |size: &&str| body(*size, &format!("{size}\r\nhello\r\n0\r\n\r\n")).broken();
    let second = |size: &&str| {
        body(format!("{size}, second"), &format!("3\r\nabc\r\n{size}\r\nhello\r\n0\r\n\r\n"))
            .broken()
    };
    all(sizes.iter().map(first).chain(sizes.iter().map(second)).collect());
}

#[test]
fn a_chunk_without_its_end_breaks_the_body_off() {
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    all(vec![
        body("no end", "5\r\nhello0\r\n\r\n").broken(),
        body("too long", "5\r\nhelloworld\r\n0\r\n\r\n").broken(),
        body("too short", "5\r\nhell\r\n0\r\n\r\n").broken(),
        body("a line feed for an end", "5\r\nhello\n0\r\n\r\n").broken(),
        body("a return for an end", "5\r\nhello\r0\r\n\r\n").broken(),
        body("other bytes for an end", "5\r\nhelloXX0\r\n\r\n").broken(),
        body("a size that ends in a return", "5\rhello\r\n0\r\n\r\n").broken(),
        body("a request for a size", hidden).broken(),
        body("a request after a chunk", &format!("5\r\nhello\r\n{hidden}")).broken(),
        body("a last one with a body", "5\r\nhello\r\n0\r\nhello\r\n\r\n").broken(),
    ]);
}

#[test]
fn a_body_that_ends_in_the_middle_never_looks_whole() {
    let whole = format!("{HEAD}5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n");
    let begin = HEAD.len();
    let cut_at = |at: usize| cut(format!("cut at {at}"), &whole[..at]).broken();
    all((begin..whole.len()).map(cut_at).collect());
}

/// One reader takes a line feed for the end of the line, the other one does not.
#[test]
fn line_feeds_alone_do_not_end_sizes() {
    let hidden = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let size = format!("{:x}", hidden.len() + 2);
    all(vec![
        body("in an extension", &format!("2;\nxx\r\n{size}\r\n{hidden}\r\n0\r\n\r\n")).broken(),
        body("in a longer one", "5;a=b\nhello\r\n0\r\n\r\n").broken(),
        body("in quotes", "5;a=\"b\nc\"\r\nhello\r\n0\r\n\r\n").broken(),
        body("a return in an extension", "5;a\rb\r\nhello\r\n0\r\n\r\n").broken(),
        body("after a size", "5\nhello\r\n0\r\n\r\n").broken(),
        body("after the last size", "5\r\nhello\r\n0\n\r\n").broken(),
        body("after the last size, twice", "5\r\nhello\r\n0\n\n").broken(),
    ]);
}

#[test]
fn lines_without_end_are_not_read_to_the_end() {
    let megabyte = "a".repeat(1 << 20);
    let mut scene = Scene::start();
    scene.is_sound().unwrap();
    let before = scene.gateway.service.memory();
    let cases = [
        body("an extension", &format!("5;{megabyte}\r\nhello\r\n0\r\n\r\n")).broken(),
        body("many", &format!("1;{}\r\nx\r\n", "a".repeat(9000)).repeat(200)).broken(),
        body("a trailer", &format!("0\r\nX-Sum: {megabyte}\r\n\r\n")).broken(),
        body("trailers", &format!("0\r\n{}\r\n", "X-Sum: y\r\n".repeat(20_000))).broken(),
        // Not a wrong size, though nobody has a use for it.
        body("zeros", &format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(1 << 20)))
            .broken()
            .passed(&["POST /a hello"]),
    ];
    let wrong: Vec<_> = cases.iter().filter_map(|case| scene.fails(case)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let after = scene.gateway.service.memory();
    assert!(after < before + 16 * 1024 * 1024, "{before} bytes became {after}");
    scene.gateway.is_well();
}

#[test]
fn a_body_longer_than_allowed_never_looks_whole() {
    let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
    let all_of_it = format!("{}0\r\n\r\n", chunk.repeat(10));
    let much = format!("POST /a {}", "x".repeat(100_000));
    all(vec![
        // Whoever has read so much may as well read the rest, and go on.
        body("too many chunks", &format!("{}0\r\n\r\n", chunk.repeat(11))).broken().skipped(),
        body("one byte too many", &format!("{}1\r\nx\r\n0\r\n\r\n", chunk.repeat(10)))
            .broken()
            .skipped(),
        body("a chunk that is too large", "f4240\r\nhello").broken(),
        body("as many as may be", &all_of_it).passed(&[&much]),
    ]);
}

#[test]
fn trailers_change_nothing_about_the_request() {
    let trailer = |line: &str| {
        let case = body(line, &format!("5\r\nhello\r\n0\r\n{line}\r\n\r\n"));
        case.broken().passed(&["POST /a hello"])
    };
    let lines = [
        "Content-Length: 3",
        "Content-Length: 5\r\nX-Sum: 1",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: identity",
        "Host: evil.example",
        "Connection: close",
        "Connection: x-forwarded-for",
        "X-Forwarded-For: 203.0.113.7",
        "Trailer: Host",
    ];
    let broken = |line: &str| body(line, &format!("5\r\nhello\r\n0\r\n{line}\r\n\r\n")).broken();
    let wrong = ["X-Sum : 1", "X-Sum: a\0b", "X-Sum: a\r\n b", "X Sum: 1", ": 1", "nonsense"];
    let mut cases: Vec<_> = lines.into_iter().map(trailer).collect();
    cases.extend(wrong.map(broken));
    all(cases);
}

#[test]
fn chunks_are_chunks_whatever_the_method_is() {
    let head = "/a HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut cases = Vec::new();
    for method in ["GET", "DELETE", "OPTIONS", "TRACE", "PUT", "PATCH", "X-STRANGE"] {
        let bytes = format!("{method} {head}5\r\nhello\r\n0\r\n\r\n");
        cases.push(case(method, bytes).passed(&[&format!("{method} /a hello")]));
        let broken = format!("{method} {head}5\r\nhello\r\n");
        cases.push(case(format!("{method}, broken"), broken).broken());
        let hidden = format!("{method} {head}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        cases.push(case(format!("{method}, none"), hidden).broken());
    }
    all(cases);
}

#[test]
fn chunks_are_passed_on_however_they_are_written() {
    let once = &["POST /a hello"];
    all(vec![
        body("one", "5\r\nhello\r\n0\r\n\r\n").passed(once),
        body("five", "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n").passed(once),
        body("none", "0\r\n\r\n").passed(&["POST /a"]),
        body("zeros", "00005\r\nhello\r\n000\r\n\r\n").passed(once),
        body("large digits", "A\r\nhellohello\r\n0\r\n\r\n").passed(&["POST /a hellohello"]),
        body("small digits", "a\r\nhellohello\r\n0\r\n\r\n").passed(&["POST /a hellohello"]),
        body("extensions", "5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n").passed(once),
        body("blanks after", "5 \t\r\nhello\r\n0\r\n\r\n").broken().passed(once),
        body("a trailer", "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n").passed(once),
        body("a request inside", "1f\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n0\r\n\r\n")
            .passed(&["POST /a GET /smuggled HTTP/1.1\\r\\nHost: a"]),
    ]);
}
