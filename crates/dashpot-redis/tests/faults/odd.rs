//! Servers that answer, but not as they should.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, KeyOperation};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{
    DEADLINE, GENEROUS, PATIENT, Rig, allowed, ask, daily, left, manage, millis, plenty, run,
    started, told, until_answered,
};
use super::load::{Load, Pattern, Seen};

const CALLERS: Pattern = Pattern { callers: 64, pause: millis(5), is_shared: false };

#[test]
fn a_server_that_was_demoted_is_an_outage_and_not_a_storm() {
    run(async {
        let rig = Rig::direct(DEADLINE).await;
        let load = Load::start(&rig.store, &[plenty()], CALLERS);
        tokio::time::sleep(millis(100)).await;
        let received = || rig.server.info("total_connections_received").parse::<u64>().unwrap();
        assert!(rig.server.command(&["REPLICAOF", "127.0.0.1", "1"]).is_ok());
        let (demoted, before) = (Instant::now(), received());
        tokio::time::sleep(millis(1000)).await;
        let tried = received() - before;
        assert!(rig.server.command(&["REPLICAOF", "NO", "ONE"]).is_ok());
        let promoted = Instant::now();
        println!("recovers after {:?}", until_answered(&rig.store, millis(1000)).await);
        let calls = load.stop().await;
        let mut meanwhile =
            calls.iter().filter(|call| call.began > demoted && call.ended() < promoted);
        assert!(meanwhile.all(|call| matches!(call.seen, Seen::Failed(_))));
        println!("{tried} connections in a second");
        assert!(tried <= 8, "{tried} connections in a second");
        rig.is_clean();
    });
}

#[test]
fn connections_that_break_as_soon_as_they_are_used_are_no_storm() {
    run(async {
        let rig = Rig::proxied(DEADLINE).await;
        let load = Load::start(&rig.store, &[plenty()], CALLERS);
        let before = rig.proxy.connections();
        // Enough to connect and a few answers.
        rig.proxy.cut_after(600);
        tokio::time::sleep(millis(1000)).await;
        let tried = rig.proxy.connections() - before;
        rig.proxy.cut_after(None);
        until_answered(&rig.store, millis(1000)).await;
        load.stop().await;
        println!("{tried} connections in a second");
        assert!(tried <= 8, "{tried} connections in a second");
        rig.is_clean();
    });
}

#[test]
fn a_server_that_is_busy_with_a_script_of_somebody_else_is_waited_for_no_longer() {
    run(async {
        let server = RedisServer::with(&["--busy-reply-threshold", "50"]);
        let store = started(RedisStore::builder(server.url())).await;
        let load = Load::start(&store, &[plenty()], CALLERS);
        let mut other = server.connect().unwrap();
        other.send(b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n").unwrap();
        tokio::time::sleep(millis(500)).await;
        let killed = server.command(&["SCRIPT", "KILL"]);
        assert!(killed.is_ok(), "{killed:?}");
        // It is dead when who sent it is told so.
        other.receive().unwrap();
        println!("recovers after {:?}", until_answered(&store, millis(1000)).await);
        let calls = load.stop().await;
        assert!(calls.iter().any(|call| matches!(call.seen, Seen::Failed(_))));
        assert!(calls.iter().all(|call| call.took < GENEROUS));
    });
}

#[test]
fn a_server_that_takes_nobody_any_more_is_down_until_it_does() {
    run(async {
        let server = RedisServer::start();
        assert!(server.command(&["CONFIG", "SET", "maxclients", "1"]).is_ok());
        let store = RedisStore::builder(server.url()).start().unwrap();
        // Whether its complaint is heard depends on how fast it hangs up.
        store.ready(millis(600)).await.unwrap_err();
        assert!(store.health().servers[0].reason.is_some());
        assert!(server.command(&["CONFIG", "SET", "maxclients", "100"]).is_ok());
        println!("recovers after {:?}", until_answered(&store, millis(1000)).await);
    });
}

/// Whatever it is asked.
fn store_at_one_who_says(answer: &'static str) -> RedisStore {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 100]);
            let _ = client.write_all(answer.repeat(50).as_bytes());
        }
    });
    RedisStore::builder(url).start().unwrap()
}

#[test]
fn what_is_no_redis_at_all_is_down() {
    run(async {
        let answers =
            ["HTTP/1.1 400 Bad Request\r\n\r\n", "$-5\r\n", "*1000000000\r\n", "", "\0\0\0"];
        for store in answers.map(store_at_one_who_says) {
            store.ready(millis(200)).await.unwrap_err();
            let start = Instant::now();
            ask(&store, plenty(), "alice").await.unwrap_err();
            assert!(start.elapsed() < GENEROUS, "{:?}", start.elapsed());
            assert!(!store.health().is_up());
        }
    });
}

#[test]
fn a_key_that_somebody_spoiled_is_its_own_problem_until_it_is_reset() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        for algorithm in Algorithm::ALL {
            let policy = daily(algorithm, 5);
            for spoil in [vec!["SET"], vec!["RPUSH"], vec!["HSET", "x"], vec!["HSET", "b"]] {
                allowed(&rig.store, policy, "alice").await;
                let keys = rig.server.keys();
                let name = format!(":{}:", policy.name());
                let is_its = |key: &&Vec<u8>| {
                    let key = String::from_utf8_lossy(key);
                    key.starts_with("dashpot:{alice}") && key.contains(&name)
                };
                let key = keys.iter().find(is_its).expect("it is kept");
                rig.server.command(&[b"DEL", key.as_slice()]);
                let mut command = vec![spoil[0].as_bytes(), key];
                command.extend(spoil[1..].iter().map(|field| field.as_bytes()));
                command.push(b"nonsense");
                rig.server.command(&command);

                // It is told, or starts fresh.
                let start = Instant::now();
                match ask(&rig.store, policy, "alice").await {
                    Ok(decision) => println!("{policy:?} {spoil:?}: {decision:?}"),
                    Err(error) => println!("{policy:?} {spoil:?}: {}", told(&error)),
                }
                assert!(start.elapsed() < Duration::from_secs(1));
                allowed(&rig.store, plenty(), "bob").await;
                assert!(rig.store.health().is_up());
                manage(&rig.store, policy, "alice", KeyOperation::Reset).await;
                assert_eq!(left(&rig.store, policy, "alice").await, 5);
            }
        }
        rig.is_clean();
    });
}
