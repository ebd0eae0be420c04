//! Ten thousand at once.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::caller::{Caller, get};
use crate::echo;
use crate::gateway::Gateway;
use crate::service::until;

const CROWD: usize = 10_000;
const AT_A_TIME: usize = 50;

/// Lets this process have as many connections as the test needs.
fn room_for(connections: u64) {
    let most = rlimit::increase_nofile_limit(connections + 1500).unwrap();
    assert!(most >= connections + 1500, "at most {most} files may be open here");
}

/// Many at a time: who has to come again because there was no room in the queue waits for a second.
fn connect_all(address: SocketAddr) -> Vec<Caller> {
    thread::scope(|scope| {
        let some = || (0..CROWD / AT_A_TIME).map(|_| Caller::to(address)).collect::<Vec<_>>();
        let all: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(some)).collect();
        all.into_iter().flat_map(|some| some.join().unwrap()).collect()
    })
}

/// Each of them asks this often, many at a time, and is answered right. How long one of them waited.
fn ask_all(crowd: &mut [Caller], times: usize) -> Duration {
    thread::scope(|scope| {
        let ask = |some: &mut [Caller]| {
            let mut longest = Duration::ZERO;
            for nth in 0..times {
                for caller in &mut *some {
                    let begun = Instant::now();
                    let answer = caller.get(&format!("/{nth}")).unwrap();
                    assert_eq!((answer.status(), answer.text()), (200, format!("GET /{nth}")));
                    longest = longest.max(begun.elapsed());
                }
            }
            longest
        };
        let size = crowd.len().div_ceil(AT_A_TIME);
        let parts: Vec<_> =
            crowd.chunks_mut(size).map(|some| scope.spawn(move || ask(some))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).max().unwrap_or_default()
    })
}

#[test]
fn ten_thousand_are_served_and_cost_little_while_they_are_idle() {
    room_for(CROWD as u64);
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &["--idle-timeout", "5min"]);
    let mut few: Vec<_> = (0..AT_A_TIME).map(|_| gateway.caller()).collect();
    ask_all(&mut few, 10);
    let alone = gateway.service.memory();

    let begun = Instant::now();
    let mut crowd = connect_all(gateway.address);
    let open = || gateway.service.metric("dashpot_open_connections");
    until("all to be accepted", Duration::from_secs(30), || (open() >= 10_000.0).then_some(()));
    let mute = gateway.service.memory().saturating_sub(alone) / CROWD as u64;
    println!("all are there after {:?}, {mute} bytes for each", begun.elapsed());

    // All of them are served, then most are idle and some are not.
    let longest = ask_all(&mut crowd, 1);
    let full = gateway.service.memory();
    let each = full.saturating_sub(alone) / CROWD as u64;
    println!(
        "served after {:?}, {longest:?} at most; {alone} bytes, {full} with all, {each} for each",
        begun.elapsed()
    );
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    let longest = ask_all(&mut crowd[..500], 4);
    println!("some of them: {longest:?} at most");
    assert!(longest < Duration::from_secs(3), "{longest:?}");
    for _ in 0..50 {
        assert!(gateway.serves("/other") < Duration::from_secs(2));
    }

    // There are no more connections to the backend than were needed at once.
    let made = backend.accepted();
    assert!(made < 1000, "{made} connections to the backend");
    assert!(each < 40 * 1024, "{each} bytes for each connection");
    drop(crowd);
    until("them to be forgotten", Duration::from_secs(20), || (open() < 100.0).then_some(()));
    gateway.serves("/after");
    backend.is_content();
    gateway.is_well();
}

/// Hundreds wait for a backend that takes its time: each of them has a connection to it.
#[test]
fn hundreds_wait_for_a_slow_backend_and_a_quick_one_does_not() {
    let backend = echo::backend();
    let mut gateway = Gateway::start(backend.address, &[]);
    let mut crowd: Vec<_> = (0..400).map(|_| gateway.caller()).collect();
    for caller in &mut crowd {
        caller.send(get("/sleep/3000"));
    }
    until("all to be asked for", Duration::from_secs(10), || {
        (backend.times("GET /sleep/3000") == 400).then_some(())
    });
    for _ in 0..20 {
        assert!(gateway.serves("/quick") < Duration::from_secs(1));
    }
    for caller in &mut crowd {
        assert_eq!(caller.answer().unwrap().text(), "GET /sleep/3000");
    }
    gateway.is_well();
}

#[test]
fn who_is_one_too_many_waits_until_another_leaves() {
    let backend = echo::backend();
    let gateway = Gateway::start(backend.address, &["--max-connections", "3"]);
    let mut inside: Vec<_> = (0..3).map(|_| gateway.caller()).collect();
    for caller in &mut inside {
        assert_eq!(caller.get("/a").unwrap().status(), 200);
    }
    let mut outside = gateway.caller();
    outside.send(get("/outside"));
    outside.patience(Duration::from_millis(500));
    let early = outside.answer();
    assert!(early.is_err(), "served though three are inside: {early:?}");
    assert_eq!(backend.times("GET /outside"), 0);
    // Those inside are none the worse for it.
    for caller in &mut inside {
        assert_eq!(caller.get("/a").unwrap().status(), 200);
    }
    drop(inside.pop());
    outside.patience(Duration::from_secs(20));
    assert_eq!(outside.answer().unwrap().text(), "GET /outside");
    // And so it goes on: no place is lost when many come and go, or die within.
    drop((inside, outside));
    for nth in 0..60 {
        let mut caller = gateway.caller();
        match nth % 3 {
            0 => assert_eq!(caller.get("/a").unwrap().status(), 200),
            1 => caller.send("GET /a HT"),
            _ => {
                caller.send(get("/sleep/20"));
                caller.reset();
            }
        }
    }
    gateway.serves("/after");
}
