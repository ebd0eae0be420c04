//! Many commands in one piece: answered in order, all of them.

use std::io::Write;
use std::net::Shutdown;
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
    let mut remaining = a_long_pipeline(&Scene::on_redis(&redis, &[]), 10_000);
    remaining.sort_unstable_by_key(|remaining| -remaining);
    assert_eq!(remaining, expected(10_000));
}

/// Who sends three and may have one expects that it is the first.
#[test]
fn commands_of_a_pipeline_count_in_their_order_when_redis_counts() {
    let redis = RedisServer::start();
    let scene = Scene::on_redis(&redis, &[]);
    // The first has to wait for a connection to Redis as well.
    let wrong = (0..20).filter_map(|round| {
        let mut wire = scene.connect();
        let throttle = words(&format!("CL.THROTTLE order{round} 499 1 3600"));
        wire.send(throttle.repeat(500));
        let remaining: Vec<_> = (0..500).map(|_| wire.reply().throttle()[2]).collect();
        let nth = remaining.windows(2).position(|two| two[0] <= two[1])?;
        let around = &remaining[nth.saturating_sub(2)..(nth + 5).min(500)];
        Some(format!("round {round}, about answer {nth}: {around:?} remain"))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
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
    let scene = Scene::on_redis(&redis, &[]);
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

/// What came before a mistake is answered before it is told, also if that takes a while.
#[test]
fn a_mistake_waits_its_turn() {
    let redis = RedisServer::start();
    let scene = Scene::on_redis(&redis, &[]);
    for mistake in ["*x\r\n", "ECHO \"\r\n", "*1\r\n$4\r\nPINGxx"] {
        let mut wire = scene.connect();
        let throttles = words("CL.THROTTLE mistake 9999 1 3600").repeat(300);
        wire.send([&throttles, mistake.as_bytes(), &words("PING")].concat());
        for _ in 0..300 {
            assert_eq!(wire.reply().throttle()[0], 0);
        }
        assert!(wire.reply().error().starts_with("ERR Protocol error: "), "{mistake:?}");
        assert_eq!(wire.rest(), b"");
    }
}

/// As with `printf … | nc`, and as Redis does.
#[test]
fn who_has_said_all_and_closes_their_side_is_answered() {
    let redis = RedisServer::start();
    for scene in [Scene::start(&[]), Scene::on_redis(&redis, &[])] {
        let mut wire = scene.connect();
        let throttle = words("CL.THROTTLE said-all 9999 1 3600");
        wire.send([words("PING"), throttle.repeat(50), words("ECHO last")].concat());
        wire.stream.shutdown(Shutdown::Write).unwrap();
        assert!(wire.reply().is_status("PONG"));
        for _ in 0..50 {
            assert_eq!(wire.reply().throttle()[0], 0);
        }
        assert_eq!(wire.reply().text(), "last");
        assert_eq!(wire.rest(), b"", "and then it is over");
    }
}
