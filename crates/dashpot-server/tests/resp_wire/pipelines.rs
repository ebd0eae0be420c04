//! Many commands in one piece: answered in order, all of them.

use std::io::Write;
use std::thread;

use dashpot_testkit::RedisServer;

use crate::reply::Reply;
use crate::scene::{Scene, framed, words};

/// How much may pass of the one key at once.
const BURST: i64 = 20_000;

/// The nth command of a long pipeline, framed or typed.
fn nth(number: i64) -> Vec<u8> {
    let text = number.to_string();
    match number % 5 {
        0 => framed(&["ECHO", &text]),
        1 => framed(&["PING", &text]),
        2 => format!("PING {text}\r\n").into_bytes(),
        3 => framed(&["NOSUCH", &text]),
        _ => framed(&["CL.THROTTLE", "pipe", &(BURST - 1).to_string(), "1", "3600"]),
    }
}

/// Whether this is the answer to it, when so many have passed before.
#[track_caller]
fn check(number: i64, passed: &mut i64, reply: &Reply) {
    let text = number.to_string();
    match number % 5 {
        0..=2 => assert_eq!(*reply, Reply::Text('$', text.into())),
        3 => {
            let expected =
                format!("ERR unknown command 'NOSUCH', with args beginning with: '{text}' ");
            assert_eq!(reply.error(), expected);
        }
        _ => {
            *passed += 1;
            let [limited, limit, remaining, retry_after, _] = reply.throttle();
            let expected = [0, BURST, BURST - *passed, -1];
            assert_eq!([limited, limit, remaining, retry_after], expected, "{number}");
        }
    }
}

fn a_long_pipeline(scene: &Scene, count: i64) {
    let mut wire = scene.connect();
    let mut bytes: Vec<u8> = (0..count).flat_map(nth).collect();
    bytes.extend(words("QUIT"));
    let mut writer = wire.stream.try_clone().unwrap();
    let writing = thread::spawn(move || writer.write_all(&bytes));
    let mut passed = 0;
    for number in 0..count {
        check(number, &mut passed, &wire.reply());
    }
    writing.join().unwrap().unwrap();
    assert_eq!(wire.rest(), b"+OK\r\n", "and that is all");
    assert_eq!(passed, count / 5);
}

#[test]
fn ten_thousand_commands_are_answered_in_order() {
    a_long_pipeline(&Scene::start(&[]), 10_000);
}

/// Those that wait for Redis are not overtaken by those that need not.
#[test]
fn so_they_are_when_redis_counts() {
    let redis = RedisServer::start();
    a_long_pipeline(&Scene::start(&["--store", &redis.url()]), 10_000);
}

/// Several at once, each with answers of its own.
#[test]
fn pipelines_do_not_get_into_each_others_way() {
    let scene = Scene::start(&[]);
    thread::scope(|scope| {
        for who in 0..8 {
            let scene = &scene;
            scope.spawn(move || {
                let mut wire = scene.connect();
                for round in 0..20 {
                    let texts: Vec<_> = (0..50).map(|nth| format!("{who}-{round}-{nth}")).collect();
                    let bytes: Vec<u8> =
                        texts.iter().flat_map(|text| framed(&["ECHO", text])).collect();
                    wire.send(bytes);
                    for text in texts {
                        assert_eq!(wire.reply(), Reply::Text('$', text.into()));
                    }
                }
            });
        }
    });
}

/// `HELLO` and `RESET` hold for what comes after them and for nothing before, however long that takes.
#[test]
fn what_changes_the_protocol_waits_its_turn() {
    let redis = RedisServer::start();
    let scene = Scene::start(&["--store", &redis.url()]);
    let mut wire = scene.connect();
    let (throttle, name) = ("CL.THROTTLE turn 99 1 3600", "CLIENT GETNAME");
    let mut bytes = Vec::new();
    for _ in 0..10 {
        for command in [throttle, name, "HELLO 3", throttle, name, "RESET", throttle, name] {
            bytes.extend(words(command));
        }
    }
    wire.send(bytes);
    for round in 0..10 {
        assert_eq!(wire.reply().throttle()[2], 100 - 3 * round - 1);
        assert_eq!(wire.reply(), Reply::Nil("$-1".to_owned()));
        assert!(matches!(wire.reply(), Reply::Many('%', _)));
        assert_eq!(wire.reply().throttle()[2], 100 - 3 * round - 2);
        assert_eq!(wire.reply(), Reply::Nil("_".to_owned()));
        assert!(wire.reply().is_status("RESET"));
        assert_eq!(wire.reply().throttle()[2], 100 - 3 * round - 3);
        assert_eq!(wire.reply(), Reply::Nil("$-1".to_owned()));
    }
}
