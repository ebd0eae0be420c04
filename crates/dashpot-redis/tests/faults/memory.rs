//! A server that is full.

use std::time::Instant;

use dashpot::Algorithm;
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::Reply;

use super::common::{
    GENEROUS, PATIENT, allowed, ask, daily, left, millis, no_key_stays, run, started, told,
    until_answered,
};
use super::load::{Load, Pattern, Seen};

/// Fills it with what is not ours until it takes no more, and a while after it would again: what it
/// needs for its clients comes and goes.
fn fill(server: &RedisServer) {
    let value = vec![b'x'; 10_000];
    for number in 0.. {
        let key = format!("foreign:{number}");
        match server.command(&[b"SET", key.as_bytes(), &value]) {
            Reply::Error(error) if error.starts_with("OOM") => break,
            reply => assert!(reply.is_ok(), "{reply:?}"),
        }
    }
    let used: u64 = server.info("used_memory").parse().unwrap();
    let most = (used - 1_000_000).to_string();
    assert!(server.command(&["CONFIG", "SET", "maxmemory", &most]).is_ok());
}

/// Takes away what it was filled with.
fn empty(server: &RedisServer) {
    let keys = server.keys();
    let foreign = keys.iter().filter(|key| key.starts_with(b"foreign:"));
    let command: Vec<&[u8]> =
        std::iter::once(b"UNLINK".as_slice()).chain(foreign.map(Vec::as_slice)).collect();
    server.command(&command);
}

#[test]
fn a_full_server_is_an_error_and_never_an_allowance_that_was_not_counted() {
    run(async {
        let server = RedisServer::with(&["--maxmemory", "6mb"]);
        let store = started(RedisStore::builder(server.url()).deadline(PATIENT)).await;
        let policies = Algorithm::ALL.map(|algorithm| daily(algorithm, 100));
        for policy in policies {
            allowed(&store, policy, "alice").await;
        }
        fill(&server);

        let (mut taken, mut errors) = ([0; 6], 0);
        for round in 0..50 {
            for (policy, taken) in policies.iter().zip(&mut taken) {
                // A new one and a known one.
                let key = if round % 2 == 0 { "alice" } else { "bob" };
                let start = Instant::now();
                match ask(&store, policy, key).await {
                    Ok(decision) if decision.is_allowed() => *taken += 1,
                    Ok(decision) => panic!("nobody asked for so much: {decision:?}"),
                    Err(error) => {
                        errors += 1;
                        assert!(told(&error).contains("memory"), "{}", told(&error));
                    }
                }
                assert!(start.elapsed() < GENEROUS, "{:?}", start.elapsed());
            }
        }
        println!("allowed {taken:?}, errors {errors}");
        assert_eq!(errors, 300);

        empty(&server);
        until_answered(&store, millis(1000)).await;
        for (policy, taken) in policies.iter().zip(taken) {
            let counted =
                200 - left(&store, policy, "alice").await - left(&store, policy, "bob").await;
            assert_eq!(counted, 1 + taken, "{policy:?}");
            allowed(&store, policy, "bob").await;
        }
        no_key_stays(&server);
    });
}

#[test]
fn a_full_server_with_many_callers_recovers_once_there_is_room() {
    run(async {
        let server = RedisServer::with(&["--maxmemory", "6mb"]);
        let store = started(RedisStore::builder(server.url()).deadline(PATIENT)).await;
        let policy = daily(Algorithm::FixedWindow, 1_000_000);
        fill(&server);
        let pattern = Pattern { callers: 32, pause: millis(5), is_shared: true };
        let load = Load::start(&store, &[policy], pattern);
        let most = server.command(&["CONFIG", "GET", "maxmemory"]).array()[1].text();
        // There is room for a moment, and none, and in between it may end within a call.
        for _ in 0..10 {
            tokio::time::sleep(millis(30)).await;
            assert!(server.command(&["CONFIG", "SET", "maxmemory", "100mb"]).is_ok());
            tokio::time::sleep(millis(10)).await;
            assert!(server.command(&["CONFIG", "SET", "maxmemory", &most]).is_ok());
        }
        empty(&server);
        println!("recovers after {:?}", until_answered(&store, millis(1000)).await);
        tokio::time::sleep(millis(100)).await;
        let calls = load.stop().await;
        let allowed = calls.iter().filter(|call| call.seen == Seen::Allowed).count() as u64;
        let failed = calls.iter().filter(|call| matches!(call.seen, Seen::Failed(_))).count();
        assert!(failed > 50 && allowed > 50, "{failed} failed, {allowed} allowed");
        assert!(calls.iter().all(|call| call.took < GENEROUS));
        // Nobody waited in vain, so what was counted is what was allowed.
        assert_eq!(left(&store, policy, "shared").await, 1_000_000 - allowed);
        no_key_stays(&server);
    });
}
