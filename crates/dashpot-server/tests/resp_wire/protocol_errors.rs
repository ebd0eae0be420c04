//! What is no protocol: told as Redis tells it, and hung up on.

use crate::redis::Pair;
use crate::scene::{Scene, words};

#[test]
fn what_is_no_frame_is_told_as_redis_tells_it_and_ends_the_connection() {
    let mut cases: Vec<Vec<u8>> = [
        "*a",
        "*",
        "*1a",
        "*01",
        "*+1",
        "* 1",
        "*1 ",
        "*1.0",
        "*0x1",
        "*-",
        "*-0",
        "*--1",
        "*-01",
        "*00",
        "*2147483648",
        "*9223372036854775807",
        "*9223372036854775808",
        "*-9223372036854775809",
        "*99999999999999999999999999",
        "*1\r\nPING",
        "*1\r\n:4",
        "*1\r\n*1",
        "*1\r\n+PING",
        "*1\r\n",
        "*1\r\n\x01",
        "*1\r\n$",
        "*1\r\n$a",
        "*1\r\n$-1",
        "*1\r\n$-0",
        "*1\r\n$04",
        "*1\r\n$+4",
        "*1\r\n$ 4",
        "*1\r\n$4 ",
        "*1\r\n$-4",
        "*1\r\n$536870913",
        "*1\r\n$2147483648",
        "*1\r\n$9223372036854775808",
        "*1\r\n$18446744073709551620",
        "*2\r\n$4\r\nECHO\r\nhello",
        "*2\r\n$4\r\nECHO\r\n$x",
    ]
    .iter()
    .map(|case| format!("{case}\r\nPING\r\n").into_bytes())
    .collect();
    // What came before is answered.
    cases.push([words("ECHO first"), words("NOSUCH"), b"*x\r\n".to_vec(), words("PING")].concat());
    cases.push([words("ECHO first"), b"*1\r\n$x\r\n".to_vec(), words("PING")].concat());
    Pair::start().same(&cases);
}

/// Byte for byte: it need not be text.
#[test]
fn what_is_there_instead_is_shown_as_it_is() {
    let cases: [&[u8]; 4] =
        [b"*1\r\n\x7f\r\n", b"*1\r\n\t\r\n", b"*1\r\n\xff\r\n", b"*1\r\n\xc3\xa4\r\n"];
    Pair::start().same(&cases);
}

#[test]
fn after_hello_3_as_well() {
    let pair = Pair::start();
    let mut said = Vec::new();
    for address in [pair.redis(), pair.dashpot.resp] {
        let mut wire = crate::scene::Wire::to(address);
        wire.ask("HELLO 3");
        wire.send("*1\r\nPING\r\n");
        said.push(wire.rest());
    }
    assert_eq!(said[0], said[1]);
}

/// Redis does not look. Who is out of step should hear of it, and not have what is in the middle of something else
/// carried out.
#[test]
fn a_string_that_does_not_end_where_it_says_is_a_protocol_error() {
    let scene = Scene::start(&[]);
    for (case, before) in [
        ("*1\r\n$4\r\nPINGxx", ""),
        ("*1\r\n$4\r\nPING\n\n", ""),
        ("*1\r\n$4\r\nPING\rx", ""),
        ("*1\r\n$3\r\nPING\r\n", ""),
        ("*2\r\n$4\r\nECHO\r\n$2\r\nhello\r\n", ""),
        ("*2\r\n$4\r\nECHO\r\n$0\r\nhello\r\n", ""),
        ("PING\r\n*1\r\n$4\r\nPINGxx", "+PONG\r\n"),
    ] {
        let mut wire = scene.connect();
        wire.send([case.as_bytes(), &words("ECHO afterwards")].concat());
        let said = String::from_utf8(wire.rest()).unwrap();
        let error = said.strip_prefix(before).unwrap_or_else(|| panic!("{case:?}: {said:?}"));
        assert!(error.starts_with("-ERR Protocol error: "), "{case:?}: {said:?}");
        assert!(error.ends_with("\r\n") && error.lines().count() == 1, "{case:?}: {said:?}");
    }
    scene.serves();
}

/// After a mistake nobody knows where the next command begins.
#[test]
fn nothing_is_carried_out_after_a_mistake() {
    let scene = Scene::start(&[]);
    let throttle = "CL.THROTTLE wrong 5 1 3600";
    for mistake in ["*x\r\n", "*1\r\n$x\r\n", "*1\r\n$4\r\nPINGxx", "ECHO \"\r\n", "*1\r\nPING\r\n"]
    {
        let mut wire = scene.connect();
        wire.send([mistake.as_bytes(), &words(throttle), &words(throttle)].concat());
        wire.rest();
        let mut wire = scene.connect();
        wire.send(format!("{mistake}{throttle}\r\n{throttle}\r\n"));
        wire.rest();
    }
    assert_eq!(scene.left("wrong"), 6);
}
