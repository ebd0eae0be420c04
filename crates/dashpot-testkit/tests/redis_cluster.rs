//! A cluster is whole when it starts, heals when it is hurt, and moves slots while it is used.

use std::collections::BTreeSet;

use dashpot_testkit::redis::{RedisServer, Reply, slot};
use dashpot_testkit::{RedisCluster, on_all_threads};

#[test]
fn slots_are_those_that_redis_knows() {
    let server = RedisServer::with(&["--cluster-enabled", "yes"]);
    let odd: [&[u8]; 14] = [
        b"",
        b"a",
        b"123456789",
        b"{a}",
        b"{a}b",
        b"b{a}",
        b"{}a",
        b"{{a}}",
        b"{a}{b}",
        b"a{",
        b"}{a",
        b"{a",
        b"\xff\0{\r\n}",
        b"a{}{b}",
    ];
    let many = (0..500_u32).map(|i| format!("user:{{{}}}:{i}", i / 3).into_bytes());
    for key in odd.iter().map(|key| key.to_vec()).chain(many) {
        let told = server.command(&[b"CLUSTER", b"KEYSLOT".as_slice(), &key]);
        assert_eq!(told, Reply::Int(slot(&key).into()), "{key:?}");
    }
}

#[test]
fn it_is_whole_and_heals() {
    let cluster = RedisCluster::start();
    let primaries: BTreeSet<_> =
        (0..16384).step_by(256).map(|slot| cluster.primary_of(slot).port()).collect();
    let expected: BTreeSet<_> = cluster.nodes()[..3].iter().map(RedisServer::port).collect();
    assert_eq!(primaries, expected);
    let addresses: Vec<_> = cluster.nodes().iter().map(RedisServer::address).collect();
    assert_eq!(cluster.url(), format!("redis-cluster://{}", addresses.join(",")));

    let here = slot(b"a");
    let (primary, replica) = (cluster.primary_of(here), cluster.replica_of(here));
    assert!(primary.command(&["SET", "a", "1"]).is_ok());
    assert_eq!(primary.command(&["WAIT", "1", "1000"]), Reply::Int(1));
    assert_eq!(cluster.keys_without_ttl(), [b"a"]);

    let old = cluster.kill_primary_of(here);
    assert_eq!(old, primary.port());
    let new = cluster.wait_for_failover(here, old);
    assert_eq!(new.port(), replica.port());
    assert_eq!(cluster.primary_of(here).port(), new.port());
    assert_eq!(new.command(&["GET", "a"]).text(), "1");
    assert_eq!(cluster.keys_without_ttl(), [b"a"]);

    // The old one comes back, and follows.
    primary.restart();
    assert_eq!(cluster.replica_of(here).port(), old);
}

#[test]
fn a_slot_moves_while_it_is_used() {
    let cluster = RedisCluster::start();
    let moving = slot(b"{tag}");
    let from = cluster.primary_of(moving);
    let to = cluster.nodes()[..3].iter().find(|node| node.port() != from.port()).unwrap();
    let key = |i: u32| format!("{{tag}}{i}");
    for i in 0..25 {
        assert!(from.command(&["SET", &key(i), "1", "PX", "60000"]).is_ok());
    }

    let under_way = cluster.begin_move(moving, to.port());
    assert_eq!(under_way.migrate_keys(10), 10);
    let replies: Vec<_> = (0..25).map(|i| from.command(&["GET", &key(i)])).collect();
    let ask = format!("ASK {moving} {}", to.address());
    let asked = |reply: &&Reply| **reply == Reply::Error(ask.clone());
    assert_eq!(replies.iter().filter(asked).count(), 10, "{replies:?}");
    let moved = (0..25).find(|&i| asked(&&replies[i as usize])).unwrap();
    let mut client = to.connect().unwrap();
    assert!(client.command(&["ASKING"]).unwrap().is_ok());
    assert_eq!(client.command(&["GET", &key(moved)]).unwrap().text(), "1");
    under_way.finish();

    let moved = format!("MOVED {moving} {}", to.address());
    assert_eq!(from.command(&["GET", &key(0)]), Reply::Error(moved));
    assert_eq!(cluster.primary_of(moving).port(), to.port());
    assert_eq!(to.keys().len(), 25);
    assert!(from.keys().is_empty() && cluster.keys_without_ttl().is_empty());

    // Back again, several times, while it is written to; nothing is lost.
    let count = on_all_threads(2, |thread| {
        if thread == 0 {
            for _ in 0..3 {
                cluster.move_slot(moving, from.port());
                cluster.move_slot(moving, to.port());
            }
            0
        } else {
            (0..1000).filter(|_| incremented(&cluster, to, "{tag}0")).count()
        }
    });
    assert_eq!(cluster.primary_of(moving).command(&["GET", "{tag}0"]).int(), 1 + count[1] as i64);
    assert_eq!(count[1], 1000);
}

/// Adds one as a client would, that follows `ASK` and `MOVED`.
fn incremented(cluster: &RedisCluster, first: &RedisServer, key: &str) -> bool {
    let mut port = first.port();
    let mut asking = false;
    for _ in 0..20 {
        let node = cluster.nodes().iter().find(|node| node.port() == port).unwrap();
        let mut connection = node.connect().unwrap();
        if asking {
            connection.command(&["ASKING"]).unwrap();
        }
        match connection.command(&["INCR", key]).unwrap() {
            Reply::Int(_) => return true,
            Reply::Error(error) if error.starts_with("MOVED") || error.starts_with("ASK") => {
                asking = error.starts_with("ASK");
                port = error.rsplit_once(':').unwrap().1.parse().unwrap();
            }
            Reply::Error(error) if error.starts_with("TRYAGAIN") => {}
            other => panic!("{other:?}"),
        }
    }
    false
}
