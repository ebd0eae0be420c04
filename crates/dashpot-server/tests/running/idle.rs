//! Many who say nothing.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, get};
use crate::service::{Service, until};

const CROWD: usize = 10_000;
const ASKED: &str = r#"{"key":"alice","limit":"1000000/s"}"#;

/// Lets this process have as many connections as the test needs.
fn room_for(connections: u64) {
    let most = rlimit::increase_nofile_limit(connections + 200).unwrap();
    assert!(most >= connections + 200, "at most {most} files may be open here");
}

/// Many at a time: who has to come again because there was no room in the queue waits for a second.
fn connect_all(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    const AT_A_TIME: usize = 50;
    let connect = || match TcpStream::connect_timeout(&address, Duration::from_secs(20)) {
        Ok(stream) => stream,
        Err(error) => panic!("not connected: {error}"),
    };
    thread::scope(|scope| {
        let some = || (0..count / AT_A_TIME).map(|_| connect()).collect::<Vec<_>>();
        let all: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(some)).collect();
        all.into_iter().flat_map(|some| some.join().unwrap()).collect()
    })
}

/// While it has no time for them, they wait where the kernel keeps them. If there is no room for
/// them there, each comes again after a second, then after two more.
#[test]
fn a_thousand_who_come_at_once_need_not_come_again() {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    if most.trim().parse::<u32>().unwrap() < 1024 {
        println!("this kernel keeps no more than {most} waiting");
        return;
    }
    let service = Service::start::<&str>(&[]);
    service.signal("STOP");
    let wait = Duration::from_millis(500);
    let came = (0..1000).map_while(|_| TcpStream::connect_timeout(&service.address, wait).ok());
    let came: Vec<_> = came.collect();
    service.signal("CONT");
    assert_eq!(came.len(), 1000, "had room to wait");
}

#[test]
fn ten_thousand_idle_connections_cost_little() {
    room_for(CROWD as u64);
    let service = Service::start::<&str>(&[]);
    let mut other = service.client();
    for _ in 0..100 {
        other.check(ASKED);
    }
    let alone = service.memory();

    let begun = Instant::now();
    let crowd = connect_all(service.address, CROWD);
    let open = || service.metric("dashpot_open_connections");
    until("all to be accepted", Duration::from_secs(20), || (open() >= 10_000.0).then_some(()));
    println!("all are there after {:?}", begun.elapsed());

    let full = service.memory();
    let each = full.saturating_sub(alone) / CROWD as u64;
    println!("{alone} bytes alone, {full} with all, {each} for each");

    // Others are served as if there were nobody.
    let mut longest = Duration::ZERO;
    for _ in 0..500 {
        let begun = Instant::now();
        assert!(other.check(ASKED).allowed());
        assert_eq!(service.client().get("/healthz").status, 200);
        longest = longest.max(begun.elapsed());
    }
    println!("the longest of 500 asked and connected in {longest:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");

    thread::sleep(Duration::from_secs(2));
    let later = service.memory();
    println!("{later} bytes later");
    assert!(later < full + full / 10, "{full} bytes became {later}");

    // Any of them may still speak up.
    for stream in crowd.into_iter().step_by(1000) {
        let mut client = Client { stream, buffer: Vec::new() };
        client.patience(Duration::from_secs(20));
        assert_eq!(client.get("/healthz").status, 200);
    }
    until("them to be forgotten", Duration::from_secs(20), || (open() < 10.0).then_some(()));
    assert!(each < 20 * 1024, "{each} bytes for each connection");
}

#[test]
fn who_is_one_too_many_waits_until_another_leaves() {
    let service = Service::start(&["--max-connections", "3"]);
    let mut inside: Vec<_> = (0..3).map(|_| service.client()).collect();
    for client in &mut inside {
        assert_eq!(client.get("/healthz").status, 200);
    }
    let mut outside = service.client();
    outside.send(get("/healthz"));
    outside.patience(Duration::from_millis(500));
    let early = outside.answer();
    assert!(early.is_err(), "served though three are inside: {early:?}");
    // Those inside are none the worse for it.
    for client in &mut inside {
        assert_eq!(client.get("/healthz").status, 200);
    }
    drop(inside.pop());
    outside.patience(Duration::from_secs(20));
    assert_eq!(outside.expect().status, 200);

    // And so it goes on: no place is lost when many come and go.
    drop(inside);
    drop(outside);
    for _ in 0..50 {
        assert_eq!(service.client().get("/healthz").status, 200);
    }
}

#[test]
fn many_wait_and_all_are_served() {
    let service = Service::start(&["--max-connections", "4"]);
    thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut client = service.client();
                for _ in 0..5 {
                    assert_eq!(client.get("/healthz").status, 200);
                }
            });
        }
    });
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let service = Service::start::<&str>(&[]);
    let round = || {
        for _ in 0..2000 {
            let mut client = service.client();
            client.send(get("/healthz"));
        }
        let open = || service.metric("dashpot_open_connections");
        until("them to be gone", Duration::from_secs(20), || (open() < 5.0).then_some(()));
        service.memory()
    };
    round();
    let (before, after) = (round(), round());
    println!("{before} bytes, then {after}");
    assert!(after < before + 4 * 1024 * 1024, "{before} bytes became {after}");
}
