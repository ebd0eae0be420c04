//! `AUTH`, where there is a password and where there is none.

use crate::redis::Pair;
use crate::reply::Reply;
use crate::scene::{Scene, Wire, all, framed, told, words};

const NOAUTH: &str = "NOAUTH Authentication required.";

#[test]
fn without_a_password_auth_is_answered_as_redis_does() {
    let pair = Pair::start();
    pair.same_words(&[
        "AUTH x",
        "auth x",
        "AUTH ",
        "AUTH default x",
        "AUTH default ",
        "AUTH DEFAULT x",
        "AUTH bob x",
        "AUTH  x",
        "AUTH",
        "AUTH a b c",
        "RESET",
    ]);
    pair.same(&[
        all(&["AUTH x", "PING"]),
        all(&["AUTH bob x", "PING"]),
        all(&["RESET", "PING", "CLIENT GETNAME"]),
        all(&["CLIENT SETNAME alice", "RESET", "CLIENT GETNAME", "SELECT 0"]),
        all(&["HELLO 3 AUTH bob x", "CLIENT GETNAME"]),
    ]);
}

#[test]
fn before_the_password_nothing_is_answered() {
    let pair = Pair::with_password("sesame");
    let commands = [
        "PING",
        "PING x",
        "ECHO x",
        "SELECT 0",
        "CLIENT ID",
        "CLIENT GETNAME",
        "CLIENT SETNAME alice",
        "CLIENT NO-EVICT on",
        "COMMAND",
        "COMMAND COUNT",
        "COMMAND DOCS",
        "COMMAND INFO",
        "COMMAND LIST",
        "INFO",
        "INFO server",
        "CONFIG GET save",
    ];
    pair.same_words(&commands);
    pair.same(&[b"PING\r\n".to_vec(), b"*0\r\n\r\nPING\r\n".to_vec(), all(&commands[..4])]);
    let ours = [
        "CL.THROTTLE before 5 1 3600",
        "cl.throttle before 5 1 3600 2",
        "CLIENT SETINFO LIB-NAME x",
        "CLIENT NO-TOUCH on",
    ];
    let mut wire = pair.dashpot.connect();
    for command in ours {
        assert_eq!(wire.ask(command).error(), NOAUTH, "{command}");
    }
    // Redis tells those who are not known what is wrong with a command before it asks who they are. It may be told or
    // not; it is not carried out, and nothing else is told.
    for command in ["NOSUCH x", "GET x", "ECHO", "CL.THROTTLE before", "CLIENT", "CLIENT NOSUCH"] {
        let error = wire.ask(command);
        assert!(
            error.error() == NOAUTH || error.error().starts_with("ERR "),
            "{command}: {error:?}"
        );
    }
    assert!(wire.ask("AUTH sesame").is_status("OK"));
    let looked = wire.ask("CL.THROTTLE before 5 1 3600 0").throttle();
    assert_eq!(looked[2], 6, "nothing was taken");
    assert!(matches!(wire.ask("CLIENT GETNAME"), Reply::Nil(_)), "nobody got a name");
}

#[test]
fn with_a_password_auth_is_answered_as_redis_does() {
    let pair = Pair::with_password("sesame");
    let cases: [&[&str]; 28] = [
        &["AUTH sesame", "PING"],
        &["auth sesame", "PING"],
        &["AUTH default sesame", "PING"],
        &["AUTH wrong", "PING"],
        &["AUTH ", "PING"],
        &["AUTH Sesame", "PING"],
        &["AUTH sesam", "PING"],
        &["AUTH sesames", "PING"],
        &["AUTH default wrong", "PING"],
        &["AUTH DEFAULT sesame", "PING"],
        &["AUTH bob sesame", "PING"],
        &["AUTH  sesame", "PING"],
        &["AUTH", "PING"],
        &["AUTH default sesame x", "PING"],
        // Who was let in stays so.
        &["AUTH sesame", "AUTH wrong", "PING"],
        &["AUTH wrong", "AUTH sesame", "PING"],
        // Until they say otherwise.
        &["AUTH sesame", "PING", "RESET", "PING", "AUTH sesame", "PING"],
        &["RESET", "PING"],
        &["QUIT", "PING"],
        &["HELLO"],
        &["HELLO 2", "PING"],
        &["HELLO 3", "PING"],
        &["HELLO 3 SETNAME alice"],
        &["HELLO 4"],
        &["HELLO abc"],
        &["HELLO 3 AUTH default wrong", "PING"],
        &["HELLO 3 AUTH bob sesame", "PING"],
        &["AUTH sesame", "HELLO 3 AUTH default wrong", "PING", "CLIENT GETNAME"],
    ];
    pair.same(&cases.map(all));
    pair.same_words(&[
        "HELLO 3 NOSUCH",
        "HELLO 3 AUTH",
        "HELLO 3 AUTH default",
        "RESET x",
        "QUIT x",
    ]);
}

#[test]
fn hello_lets_in_as_well() {
    let pair = Pair::with_password("sesame");
    for hello in [
        "HELLO 3 AUTH default sesame",
        "HELLO 2 AUTH default sesame",
        "hello 3 auth default sesame setname alice",
        "HELLO 3 SETNAME alice AUTH default sesame",
    ] {
        let replies = [pair.redis(), pair.dashpot.resp].map(|address| {
            let mut wire = Wire::to(address);
            let Reply::Many(kind, items) = wire.ask(hello) else { panic!("{hello}") };
            let keys: Vec<_> = items.chunks(2).map(|pair| pair[0].clone()).collect();
            let after = ["PING", "CLIENT GETNAME", "HELLO 4", "AUTH wrong", "PING"];
            (kind, keys, after.map(|command| wire.ask(command)))
        });
        assert_eq!(replies[0], replies[1], "{hello}");
    }
    // A new connection is somebody else.
    assert_eq!(pair.dashpot.connect().ask("PING").error(), NOAUTH);
}

#[test]
fn little_may_be_said_before_the_password() {
    let pair = Pair::with_password("sesame");
    pair.same(&[
        framed(&["x"; 11]),
        framed(&["AUTH"; 12]),
        b"*11\r\n".to_vec(),
        b"*1024\r\n".to_vec(),
        b"*1\r\n$16385\r\n".to_vec(),
        framed(&["AUTH", &"x".repeat(16_385)]),
        framed(&["AUTH", &"x".repeat(16_384)]),
        framed(&["HELLO", "3", "a", "b", "c", "d", "e", "f", "g", "h"]),
        [words("AUTH sesame"), framed(&["ECHO", &"x".repeat(20_000)])].concat(),
        [words("AUTH sesame"), framed(&["ECHO"; 11])].concat(),
        [all(&["AUTH sesame", "RESET"]), framed(&["ECHO"; 11])].concat(),
    ]);
}

/// Passwords are bytes, and compared as such.
#[test]
fn a_password_may_have_spaces_and_more() {
    let password = "it's \"open\" ä\\ sesame";
    let scene = Scene::start(&["--resp-password", password]);
    let with = |password: &[u8]| [framed(&[b"AUTH".as_slice(), password]), words("PING")].concat();
    assert_eq!(told(scene.resp, &with(password.as_bytes())), b"+OK\r\n+PONG\r\n+OK\r\n");
    for wrong in [&password[..4], "it's", &format!("{password} "), &format!("{password}\0")] {
        let said = String::from_utf8(told(scene.resp, &with(wrong.as_bytes()))).unwrap();
        assert!(said.starts_with("-WRONGPASS invalid username-password pair"), "{wrong:?}: {said}");
        assert!(said.contains(NOAUTH), "{wrong:?}: {said}");
    }
}
