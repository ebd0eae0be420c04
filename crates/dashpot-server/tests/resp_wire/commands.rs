//! What clients say besides `CL.THROTTLE`: answered as Redis answers it.

use crate::redis::Pair;
use crate::reply::Reply;
use crate::scene::{Scene, all, framed, words};

#[test]
fn ping_and_echo_are_answered_as_redis_does() {
    Pair::start().same_words(&[
        "PING",
        "ping",
        "pInG",
        "PING hello",
        "PING ",
        "PING a b",
        "ECHO hello",
        "echo hello",
        "ECHO ",
        "ECHO",
        "ECHO a b",
    ]);
    Pair::start().same(&[
        framed(&[b"ECHO".as_slice(), b"\0\r\n\xff$5\r\n*1\r\n"]),
        framed(&[b"PING".as_slice(), &[7; 20_000]]),
        framed(&[b"ECHO".as_slice(), "ä".repeat(1000).as_bytes()]),
    ]);
}

#[test]
fn what_is_not_known_is_told_as_redis_tells_it() {
    let pair = Pair::start();
    pair.same_words(&[
        "NOSUCH",
        "nosuch a",
        "NoSuch a b c",
        "",
        " a",
        "PINGPONG",
        "CL.",
        "CL.THROTTL k",
    ]);
    let long = [b'a'; 300];
    let ten = [b"NOSUCH".as_slice(), b"abcdefghij"];
    pair.same(&[
        // Names and arguments are cut, each by rules of its own.
        framed(&[long]),
        framed(&[long, long]),
        framed(&[&long[..128], &long[..10]]),
        framed(&[&long[..129], &long[..10]]),
        framed(&[b"NOSUCH", &long[..127], b"b"]),
        framed(&[b"NOSUCH", &long[..126], b"b"]),
        framed(&[b"NOSUCH", &long[..125], b"b"]),
        framed(&[b"NOSUCH", &long[..124], b"bbb", b"c"]),
        framed(&[b"NOSUCH", &long[..128]]),
        framed(&[b"NOSUCH", &long[..129], b"b"]),
        framed(&[&ten[..1], &[ten[1]; 30]].concat()),
        framed(&[&ten[..1], &[b"".as_slice(); 200]].concat()),
        // What cannot be printed.
        framed(&[b"no\r\nsuch".as_slice(), b"\r\n", b"a\nb\rc"]),
        framed(&[b"\xff\xfe\x01".as_slice(), b"\x7f\x80", "ä".as_bytes(), b"\t\"'\\"]),
        framed(&[b"no\0such".as_slice(), b"\0a", b"b\0c", b"d"]),
        framed(&["NOSUCH", &"ä".repeat(64), "b"]),
        framed(&["NOSUCH", &format!("a{}", "ä".repeat(64)), "b"]),
    ]);
}

#[test]
fn a_wrong_number_of_arguments_is_told_as_redis_tells_it() {
    Pair::start().same_words(&[
        "CLIENT",
        "client",
        "CLIENT ID x",
        "client id x",
        "CLIENT GETNAME x",
        "CLIENT SETNAME",
        "CLIENT SETNAME a b",
        "CLIENT NO-EVICT",
        "CLIENT NO-EVICT on off",
        "COMMAND COUNT x",
        "CONFIG",
        "CONFIG GET",
        "Config Get",
        "SELECT",
        "SELECT 0 0",
        "RESET x",
        "AUTH",
        "AUTH a b c",
        "QUIT x",
    ]);
}

#[test]
fn there_is_one_database() {
    Pair::start().same_words(&[
        "SELECT 0",
        "select 0",
        "SELECT 1",
        "SELECT 16",
        "SELECT -1",
        "SELECT abc",
        "SELECT ",
        "SELECT 00",
        "SELECT +0",
        "SELECT 0.0",
    ]);
}

#[test]
fn who_quits_is_let_go_and_hears_nothing_more() {
    let pair = Pair::start();
    pair.same(&[
        all(&["QUIT"]),
        all(&["quit", "PING"]),
        all(&["PING", "QUIT", "PING", "NOSUCH"]),
        [words("QUIT"), b"*nonsense\r\n".to_vec()].concat(),
        b"QUIT\r\nPING\r\n".to_vec(),
    ]);
    // And nothing more is done.
    let said = "CL.THROTTLE after-quit 5 1 3600";
    let mut wire = pair.dashpot.connect();
    wire.send(all(&[said, "QUIT", said, said]));
    assert_eq!(wire.reply().throttle(), [0, 6, 5, -1, 3600]);
    assert_eq!(wire.rest(), b"+OK\r\n");
    assert_eq!(pair.dashpot.left("after-quit"), 5);
}

#[test]
fn clients_have_names() {
    let pair = Pair::start();
    let name = "CLIENT GETNAME";
    pair.same(&[
        all(&[name]),
        all(&["CLIENT SETNAME alice", name, "CLIENT SETNAME bob", name]),
        all(&["CLIENT SETNAME alice", "CLIENT SETNAME ", name]),
        all(&["client setname alice", "client getname", "RESET", name]),
    ]);
    // Neither spaces nor what cannot be printed; the old name stays.
    let bad: [&[u8]; 8] = [b"a b", b" ", b"a\n", b"a\r\nb", b"\x7f", b"\xc3\xa4", b"a\0b", b"a\tb"];
    for bad in bad {
        let set = framed(&[b"CLIENT", b"SETNAME".as_slice(), bad]);
        pair.same(&[[words("CLIENT SETNAME alice"), set, words(name)].concat()]);
    }
    pair.same(&[framed(&["CLIENT", "SETNAME", "!~"])]);
}

#[test]
fn a_name_may_be_long() {
    let names = [1, 64, 256].map(|length| "n".repeat(length));
    Pair::start().same(&names.map(|name| framed(&["CLIENT", "SETNAME", &name])));
}

#[test]
fn what_clients_say_about_themselves_is_taken_note_of() {
    let pair = Pair::start();
    pair.same_words(&[
        "CLIENT NO-EVICT on",
        "CLIENT NO-EVICT OFF",
        "client no-evict maybe",
        "CLIENT NOSUCH",
        "CLIENT nosuch a b",
        "CLIENT ",
        "COMMAND NOSUCH",
        "CONFIG NOSUCH",
        "config nosuch x",
    ]);
    pair.same(&[
        framed(&["CLIENT", &"x".repeat(200)]),
        framed(&[b"CLIENT".as_slice(), b"\r\n\xff\0x"]),
    ]);
    // Newer than the Redis beside us: the words are those of Redis 7.2.
    let mut wire = pair.dashpot.connect();
    for fine in [
        "CLIENT SETINFO LIB-NAME redis-py",
        "CLIENT SETINFO lib-ver 5.0.1",
        "client setinfo LIB-VER ",
        "CLIENT NO-TOUCH on",
        "CLIENT NO-TOUCH OFF",
    ] {
        assert!(wire.ask(fine).is_status("OK"), "{fine}");
    }
    assert_eq!(wire.ask("CLIENT NO-TOUCH maybe").error(), "ERR syntax error");
    assert_eq!(wire.ask("CLIENT SETINFO nosuch x").error(), "ERR Unrecognized option 'nosuch'");
    let arity = |of: &str| format!("ERR wrong number of arguments for 'client|{of}' command");
    assert_eq!(wire.ask("CLIENT SETINFO LIB-NAME").error(), arity("setinfo"));
    assert_eq!(wire.ask("CLIENT NO-TOUCH").error(), arity("no-touch"));
    wire.send(framed(&["CLIENT", "SETINFO", "LIB-NAME", "a b"]));
    let why = "err lib-name cannot contain spaces, newlines or special characters.";
    assert_eq!(wire.reply().error().to_lowercase(), why);
}

#[test]
fn every_connection_has_an_id_of_its_own() {
    let scene = Scene::start(&[]);
    let (mut one, mut other) = (scene.connect(), scene.connect());
    let id = one.ask("CLIENT ID").int();
    assert!(id > 0);
    assert_ne!(other.ask("CLIENT ID").int(), id);
    assert_eq!(one.ask("CLIENT ID").int(), id, "and keeps it");
    let hello = one.ask("HELLO");
    let at = hello.items().iter().position(|item| *item == Reply::Text('$', b"id".into())).unwrap();
    assert_eq!(hello.items()[at + 1].int(), id);
}
