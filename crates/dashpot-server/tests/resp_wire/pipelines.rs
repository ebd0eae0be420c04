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

/// Whether this is the answer to it; what remains, if it counted.
#[track_caller]
fn check(number: i64, reply: &Reply) -> Option<i64> {
    let text = number.to_string();
    match number % 5 {
        0..=2 => assert_eq!(*reply, Reply::Text('$', text.into())),
        3 => {
            let expected =
                format!("ERR unknown command 'NOSUCH', with args beginning with: '{text}' ");
            assert_eq!(reply.error(), expected);
        }
        _ => {
            let [limited, limit, remaining, retry_after, _] = reply.throttle();
            assert_eq!([limited, limit, retry_after], [0, BURST, -1], "{number}");
            return Some(remaining);
        }
    }
    None
}

/// What remained after each that counted.
fn a_long_pipeline(scene: &Scene, count: i64) -> Vec<i64> {
    let mut wire = scene.connect();
    let mut bytes: Vec<u8> = (0..count).flat_map(nth).collect();
    bytes.extend(words("QUIT"));
    let mut writer = wire.stream.try_clone().unwrap();
    let writing = thread::spawn(move || writer.write_all(&bytes));
    let remaining = (0..count).filter_map(|number| check(number, &wire.reply())).collect();
    writing.join().unwrap().unwrap();
    assert_eq!(wire.rest(), b"+OK\r\n", "and that is all");
    remaining
}

/// What must remain after each of so many commands, of which every fifth counts.
fn expected(count: i64) -> Vec<i64> {
    (1..=count / 5).map(|passed| BURST - passed).collect()
}

#[test]
fn ten_thousand_commands_are_answered_in_order() {
    assert_eq!(a_long_pipeline(&Scene::start(&[]), 10_000), expected(10_000));
}

/// Those that wait for Redis are not overtaken by those that need not, and none counts twice.
#[test]
fn so_they_are_when_redis_counts() {
    let redis = RedisServer::start();
    let mut remaining = a_long_pipeline(&Scene::start(&["--store", &redis.url()]), 10_000);
    remaining.sort_unstable_by_key(|remaining| -remaining);
    assert_eq!(remaining, expected(10_000));
}

/// Who sends three and may have one expects that it is the first.
#[test]
fn commands_of_a_pipeline_count_in_their_order_when_redis_counts() {
    let redis = RedisServer::start();
    let scene = Scene::start(&["--store", &redis.url()]);
    // Also when it has never asked that Redis before.
    for round in 0..20 {
        let mut wire = scene.connect();
        let throttle = words(&format!("CL.THROTTLE order{round} 99 1 3600"));
        wire.send(throttle.repeat(100));
        let remaining: Vec<_> = (0..100).map(|_| wire.reply().throttle()[2]).collect();
        assert_eq!(remaining, (0..100).rev().collect::<Vec<_>>(), "round {round}");
    }
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
    for _ in 0..10 {
        wire.reply().throttle();
        assert_eq!(wire.reply(), Reply::Nil("$-1".to_owned()));
        assert!(matches!(wire.reply(), Reply::Many('%', _)));
        wire.reply().throttle();
        assert_eq!(wire.reply(), Reply::Nil("_".to_owned()));
        assert!(wire.reply().is_status("RESET"));
        wire.reply().throttle();
        assert_eq!(wire.reply(), Reply::Nil("$-1".to_owned()));
    }
}
