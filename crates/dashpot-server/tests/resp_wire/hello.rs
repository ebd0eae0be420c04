//! `HELLO`, and what is said otherwise after it.

use crate::redis::Pair;
use crate::reply::Reply;
use crate::scene::{Wire, all, framed, words};

/// What must be the same of what `HELLO` answers: its kind, its keys, and the kinds of its values.
fn shape(reply: &Reply) -> (char, Vec<(String, String)>) {
    let Reply::Many(kind, items) = reply else { panic!("no map: {reply:?}") };
    let value = |key: &str, value: &Reply| match (key, value) {
        ("server" | "version", Reply::Text(kind, _)) => format!("{kind}text"),
        ("id", Reply::Line(kind, _)) => format!("{kind}number"),
        _ => format!("{value:?}"),
    };
    let pairs = items.chunks(2).map(|pair| (pair[0].text(), value(&pair[0].text(), &pair[1])));
    (*kind, pairs.collect())
}

fn value(reply: &Reply, key: &str) -> String {
    let pair = reply.items().chunks(2).find(|pair| pair[0].text() == key);
    pair.unwrap_or_else(|| panic!("no {key}: {reply:?}"))[1].text()
}

#[test]
fn hello_introduces_the_service_in_the_form_redis_does() {
    let pair = Pair::start();
    let (mut redis, mut dashpot) = (Wire::to(pair.redis()), pair.dashpot.connect());
    for asked in [
        "HELLO",
        "HELLO 2",
        "HELLO 3",
        "HELLO",
        "hello 3 setname alice",
        "HELLO 3 AUTH default anything SETNAME alice",
        "HELLO 3 SETNAME alice AUTH default anything",
        "HELLO 2",
        "HELLO",
    ] {
        let (expected, found) = (redis.ask(asked), dashpot.ask(asked));
        assert_eq!(shape(&found), shape(&expected), "{asked}");
        assert_eq!(value(&found, "server"), "dashpot");
        assert_eq!(value(&found, "version"), env!("CARGO_PKG_VERSION"));
    }
    assert_eq!(dashpot.ask("CLIENT GETNAME").text(), "alice");
}

#[test]
fn a_hello_that_is_wrong_is_told_as_redis_tells_it() {
    let pair = Pair::start();
    pair.same_words(&[
        "HELLO 1",
        "HELLO 4",
        "HELLO 0",
        "HELLO -3",
        "HELLO 33",
        "HELLO 9223372036854775808",
        "HELLO abc",
        "HELLO ",
        "HELLO 3.0",
        "HELLO 03",
        "HELLO AUTH default x",
        "HELLO 3 NOSUCH",
        "HELLO 2 NOSUCH x",
        "HELLO 3 AUTH",
        "HELLO 3 AUTH default",
        "HELLO 3 auth x",
        "HELLO 3 SETNAME",
        "HELLO 3 SETNAME x AUTH",
        "HELLO 3 AUTH default x NOSUCH",
        "HELLO 3 AUTH bob x",
        "HELLO 4 AUTH bob x",
    ]);
    let named = |name: &[u8]| framed(&[b"HELLO", b"3".as_slice(), b"SETNAME", name]);
    pair.same(&[named(b"a b"), named(b"\n"), named(b"\xc3\xa4")]);
    let nil = words("CLIENT GETNAME");
    // What failed has changed nothing: it is RESP2 still, and nobody has a name.
    for failed in ["HELLO 4", "HELLO 3 NOSUCH", "HELLO 3 AUTH bob x", "HELLO 4 SETNAME alice"] {
        pair.same(&[[words(failed), nil.clone()].concat()]);
    }
    // Redis 7.0 gives the name before it sees what is wrong after it; later ones do not.
    for failed in ["HELLO 3 SETNAME alice NOSUCH", "HELLO 3 SETNAME alice AUTH bob x"] {
        let mut wire = pair.dashpot.connect();
        wire.ask(failed).error();
        assert_eq!(wire.ask("CLIENT GETNAME"), Reply::Nil("$-1".to_owned()), "{failed}");
    }
}

/// The replies after `HELLO 3`, without its own.
fn after_hello(wire: &mut Wire, commands: &[&str]) -> Vec<Reply> {
    wire.send(all(&[&["HELLO 3"], commands].concat()));
    assert!(matches!(wire.reply(), Reply::Many('%', _)));
    commands.iter().map(|_| wire.reply()).collect()
}

#[test]
fn after_hello_3_it_speaks_resp3_as_redis_does() {
    let pair = Pair::start();
    let asked = [
        "PING",
        "PING hello",
        "ECHO hello",
        "CONFIG GET nosuch",
        "CLIENT GETNAME",
        "COMMAND INFO nosuch",
        "COMMAND DOCS nosuch",
        "INFO nosuch",
        "SELECT 0",
        "SELECT 1",
        "NOSUCH a b",
        "CLIENT SETNAME alice",
        "CLIENT GETNAME",
        "RESET",
        "CLIENT GETNAME",
        "CONFIG GET nosuch",
        "COMMAND INFO nosuch",
        "PING",
    ];
    let (mut redis, mut dashpot) = (Wire::to(pair.redis()), pair.dashpot.connect());
    let (expected, found) = (after_hello(&mut redis, &asked), after_hello(&mut dashpot, &asked));
    for ((asked, expected), found) in asked.iter().zip(expected).zip(found) {
        assert_eq!(found, expected, "{asked}");
    }
    // And back by `HELLO 2`.
    let asked = ["CLIENT GETNAME", "HELLO 2", "CLIENT GETNAME", "CONFIG GET nosuch", "PING"];
    let (expected, found) = (after_hello(&mut redis, &asked), after_hello(&mut dashpot, &asked));
    for (nth, asked) in asked.iter().enumerate().filter(|(_, asked)| **asked != "HELLO 2") {
        assert_eq!(found[nth], expected[nth], "{asked}");
    }
    // Maps and sets are in `COMMAND` as well.
    let asked = ["COMMAND INFO PING", "COMMAND DOCS PING", "INFO server"];
    let (expected, found) = (after_hello(&mut redis, &asked), after_hello(&mut dashpot, &asked));
    let flags = |of: &Reply| kind(&of.items()[0].items()[2]);
    assert_eq!(flags(&found[0]), flags(&expected[0]), "{:?}", found[0]);
    assert_eq!(kind(&found[1]), kind(&expected[1]), "{:?}", found[1]);
    assert_eq!(kind(&found[1].items()[1]), kind(&expected[1].items()[1]), "{:?}", found[1]);
    assert_eq!(kind(&found[2]), kind(&expected[2]), "{:?}", found[2]);
    assert!(found[2].text().starts_with("txt:# Server\r\n"), "{:?}", found[2]);
}

fn kind(reply: &Reply) -> char {
    match reply {
        Reply::Line(kind, _) | Reply::Text(kind, _) | Reply::Many(kind, _) => *kind,
        Reply::Nil(_) => '_',
    }
}

/// The same five numbers in both.
#[test]
fn a_throttle_is_an_array_of_numbers_in_both() {
    let pair = Pair::start();
    let mut wire = pair.dashpot.connect();
    let looked = "CL.THROTTLE k 5 1 3600 0";
    let expected = b"*5\r\n:0\r\n:6\r\n:6\r\n:-1\r\n:0\r\n";
    assert_eq!(Reply::read(expected).unwrap().0, wire.ask(looked));
    wire.ask("HELLO 3");
    assert_eq!(Reply::read(expected).unwrap().0, wire.ask(looked));
}
