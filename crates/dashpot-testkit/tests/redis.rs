//! The servers that other tests lean on do what is said of them.

use std::net::TcpListener;
use std::panic;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dashpot_testkit::redis::{RedisServer, Reply};

#[test]
fn it_answers_and_knows_its_address() {
    let server = RedisServer::start();
    assert_eq!(server.address(), format!("127.0.0.1:{}", server.port()));
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    assert_eq!(server.info("tcp_port"), server.port().to_string());
    assert!(TcpListener::bind(server.address()).is_err(), "it is taken");

    assert_eq!(server.command(&["PING"]), Reply::Text(b"PONG".into()));
    assert!(server.command(&["SET", "a", "1"]).is_ok());
    assert_eq!(server.command(&["INCR", "a"]), Reply::Int(2));
    assert_eq!(server.command(&["GET", "b"]), Reply::Nil);
    assert!(matches!(server.command(&["NO"]), Reply::Error(why) if why.starts_with("ERR unknown")));
    let several = server.command(&["MGET", "a", "b"]);
    assert_eq!(several.array(), [Reply::Text(b"2".into()), Reply::Nil]);
    assert_eq!(server.command(&["EVAL", "return {1,{}}", "0"]).array()[1], Reply::Array(vec![]));
}

#[test]
fn it_is_asked_again_over_another_connection_if_it_closes_one() {
    let server = RedisServer::start();
    let mut other = server.connect().unwrap();
    for _ in 0..3 {
        let closed = other.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        assert_eq!(closed.unwrap(), Reply::Int(1));
        assert_eq!(server.command(&["PING"]).text(), "PONG");
    }
}

#[test]
fn settings_are_heeded() {
    let server = RedisServer::with(&["--maxmemory", "2mb", "--requirepass", "secret"]);
    assert_eq!(server.info("maxmemory"), "2097152");
    let setting = |name| server.command(&["CONFIG", "GET", name]).array()[1].text();
    assert_eq!(setting("save"), "");
    assert_eq!(setting("appendonly"), "no");
    assert_eq!(setting("bind"), "127.0.0.1");
}

#[test]
fn all_keys_are_found_and_those_that_stay() {
    let server = RedisServer::start();
    let script = "for i = 1, 5000 do redis.call('SET', 'k' .. i, i, 'PX', 60000) end";
    server.command(&["EVAL", script, "0"]);
    assert!(server.keys_without_ttl().is_empty());

    let odd: &[u8] = b"\xff\r\n\0";
    server.command(&[b"SET", odd, b"1"]);
    server.command(&["PERSIST", "k77"]);
    assert_eq!(server.keys().len(), 5001);
    assert_eq!(server.keys_without_ttl(), [b"k77", odd]);
}

#[test]
fn killed_it_is_gone_and_restarted_it_is_empty() {
    let server = RedisServer::start();
    for round in 0..3 {
        assert!(server.command(&["SET", "a", "1"]).is_ok());
        if round == 0 {
            server.command(&["SAVE"]);
        }
        server.kill();
        assert!(server.try_command(&["PING"]).is_err());
        server.restart();
        assert!(server.keys().is_empty(), "round {round}");
    }
    server.restart();
    assert!(server.keys().is_empty());
}

#[test]
fn hung_it_says_nothing_until_it_goes_on() {
    let server = RedisServer::start();
    server.hang();
    let start = Instant::now();
    assert!(server.try_command(&["PING"]).is_err());
    assert!(start.elapsed() >= Duration::from_secs(2));
    server.resume();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
}

#[test]
fn it_dies_with_its_test() {
    let gone = |process: u32| !Path::new(&format!("/proc/{process}")).exists();

    let server = RedisServer::start();
    let process = server.process();
    assert!(!gone(process));
    server.hang();
    drop(server);
    assert!(gone(process), "a hung one too");

    let process = panic::catch_unwind(|| {
        let server = RedisServer::start();
        panic::resume_unwind(Box::new(server.process()));
    });
    let process: Box<u32> = process.unwrap_err().downcast().unwrap();
    assert!(gone(*process), "if the test panics");
}

/// Not a test but a process that ends without dropping anything, if it is told to.
#[test]
fn aborting() {
    if std::env::var_os("DASHPOT_ABORT").is_some() {
        let server = RedisServer::start();
        println!("process {}", server.process());
        std::process::abort();
    }
}

#[test]
fn it_dies_even_if_nothing_is_dropped() {
    // Its directory stays behind, so it gets a place that is removed here.
    let place = std::env::temp_dir().join(format!("dashpot-aborting-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "redis::aborting", "--nocapture"]);
    other.env("DASHPOT_ABORT", "1").env("TMPDIR", &place);
    let output = String::from_utf8(other.output().unwrap().stdout).unwrap();
    let process = output.split_once("process ").unwrap().1.lines().next().unwrap();
    let start = Instant::now();
    while Path::new(&format!("/proc/{process}/exe")).exists() {
        assert!(start.elapsed() < Duration::from_secs(5), "{process} lives on");
        std::thread::yield_now();
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn it_does_not_die_with_the_thread_that_starts_it() {
    let server = std::thread::spawn(RedisServer::start).join().unwrap();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
}

#[test]
fn many_at_once_do_not_get_in_each_others_way() {
    let ports = dashpot_testkit::on_all_threads(8, |thread| {
        let server = RedisServer::start();
        server.command(&["SET", "who", &thread.to_string()]);
        assert_eq!(server.command(&["GET", "who"]).int(), thread as i64);
        server.port()
    });
    assert_eq!(ports.len(), 8);
}
