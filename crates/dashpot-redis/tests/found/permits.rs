//! Permits that nobody holds come back, and those that are held stay.

use std::time::Duration;

use dashpot::{Algorithm, Check, Cost, Key, Reservation, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::{policy, ready, sleep, url, with};

/// The layer tries once, and drops the reservation. The permit is renewed for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_whose_settling_failed_comes_back_after_its_lease() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server.address());
    let store =
        RedisStore::builder(url(&proxy)).permit_lease(Duration::from_secs(1)).start().unwrap();
    ready(&store).await;
    let one = policy("one", "1 concurrent");
    let check = Check::new(&one, "alice");
    let decision = store.decide(&[check]).await.unwrap();
    let reservation = check.reservation(&decision).unwrap();
    proxy.set(Fault::Refuse);
    assert!(store.settle(&reservation, Cost::ONE).await.is_err());
    drop(reservation);
    proxy.set(Fault::None);
    sleep(6000).await;
    assert!(store.health().is_up());
    assert!(store.decide(&[check]).await.unwrap().is_allowed(), "held for ever by nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_of_many_keys_are_renewed_in_time() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server.address());
    let store = RedisStore::builder(url(&proxy))
        .permit_lease(Duration::from_secs(1))
        .deadline(Duration::from_secs(1))
        .start()
        .unwrap();
    ready(&store).await;
    let one = policy("one", "1 concurrent");
    for key in 0..200 {
        let key = key.to_string();
        assert!(store.decide(&[Check::new(&one, key.as_str())]).await.unwrap().is_allowed());
    }
    // A round trip of 10 ms: 200 keys, one after another, take two seconds.
    proxy.set(Fault::Delay(Duration::from_millis(5)));
    sleep(3000).await;
    let mut again = 0;
    for key in 0..200 {
        let key = key.to_string();
        again +=
            u32::from(store.decide(&[Check::new(&one, key.as_str())]).await.unwrap().is_allowed());
    }
    assert_eq!(again, 0, "of 200 that are still held, so many were granted again");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_parts_of_a_permit_that_are_settled_at_once_both_come_back() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .permit_lease(Duration::from_secs(1))
        .deadline(Duration::from_secs(1))
        .start()
        .unwrap();
    ready(&store).await;
    let two = policy("two", "2 concurrent");
    let check = Check::new(&two, "alice");
    let decision = store.decide(&[check, check]).await.unwrap();
    let (a, b) = (check.reservation(&decision).unwrap(), check.reservation(&decision).unwrap());
    let (a, b) = tokio::join!(store.settle(&a, Cost::ONE), store.settle(&b, Cost::ONE));
    a.unwrap();
    b.unwrap();
    sleep(3000).await;
    let now = store.decide(&[check.cost(Cost::PEEK)]).await.unwrap();
    assert_eq!(now.statuses()[0].remaining(), 2, "one is held for ever");
}

/// What a caller that gave up was granted nobody holds.
#[tokio::test(flavor = "multi_thread")]
async fn a_permit_that_came_too_late_is_given_back_soon() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server.address());
    let store = RedisStore::builder(url(&proxy)).start().unwrap();
    ready(&store).await;
    let ten = policy("ten", "10 concurrent");
    proxy.set(Fault::Delay(Duration::from_millis(15)));
    let checks = [Check::new(&ten, "alice")];
    let late = || store.decide(&checks);
    let _ = tokio::join!(
        late(),
        late(),
        late(),
        late(),
        late(),
        late(),
        late(),
        late(),
        late(),
        late()
    );
    proxy.set(Fault::None);
    sleep(2000).await;
    let left = store.decide(&[checks[0].cost(Cost::PEEK)]).await.unwrap();
    assert_eq!(left.statuses()[0].remaining(), 10, "a hiccup of 30 ms denies everybody for 30 s");
}

/// How long the server is kept from answering others.
#[tokio::test(flavor = "multi_thread")]
async fn no_script_takes_long() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .deadline(Duration::from_secs(5))
        .permit_lease(Duration::from_secs(9))
        .start()
        .unwrap();
    ready(&store).await;
    let longest = |what: &str| {
        let log = server.command(&["SLOWLOG", "GET", "-1"]);
        let most = log.array().iter().map(|entry| entry.array()[2].int()).max().unwrap_or(0);
        server.command(&["SLOWLOG", "RESET"]);
        println!("{what}: {most} µs");
        most
    };
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "1000"]);
    let log = with("log", "10000/3s", Algorithm::SlidingLog);
    let check = Check::new(&log, "alice");
    let first = store.decide(&[check]).await.unwrap();
    let first = check.reservation(&first).unwrap();
    // 9 999 more entries, written directly: 10 000 round trips take too long.
    let script = "local n = tonumber(ARGV[1]) for i = 2, 10000 do redis.call('ZADD', KEYS[1], i, \
        string.format('%016.0f', n + i)) end";
    let at = (first.charged_at().as_nanos() / 1000).to_string();
    server.command(&["EVAL", script, "1", "dashpot:{alice}:log:l3000000", &at]);
    server.command(&["SLOWLOG", "RESET"]);
    let mut most = 0;
    // All that came after are numbered anew: the docs say so.
    store.settle(&first, Cost::PEEK).await.unwrap();
    longest("giving back the oldest of 10 000 entries");
    sleep(3500).await;
    server.command(&["PERSIST", "dashpot:{alice}:log:l3000000"]);
    server.command(&["EVAL", script, "1", "dashpot:{bob}:log:l3000000", &at]);
    server.command(&["SLOWLOG", "RESET"]);
    let bob = Reservation::new(log.clone(), Key::from("bob"), Cost::ONE, first.charged_at());
    store.settle(&bob, Cost::new(2)).await.unwrap();
    most = most.max(longest("charging to a log with 10 000 entries that have left"));

    let many = policy("many", "10000 concurrent");
    let check = Check::new(&many, "alice");
    for _ in 0..10 {
        let checks = vec![check; 1000];
        let _ = store.decide(&checks).await.unwrap();
    }
    server.command(&["SLOWLOG", "RESET"]);
    sleep(4000).await;
    most = most.max(longest("renewing 10 000 permits"));
    assert!(most < 10_000, "{most} µs");
}
