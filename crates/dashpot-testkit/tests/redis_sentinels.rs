//! Sentinels watch over a master, and make another one when they must or are told to.

use dashpot_testkit::RedisSentinels;
use dashpot_testkit::redis::RedisServer;

#[test]
fn a_dead_master_is_replaced() {
    let all = RedisSentinels::start();
    let addresses: Vec<_> = all.sentinels().iter().map(RedisServer::address).collect();
    assert_eq!(all.url(), format!("redis-sentinel://{}/mymaster", addresses.join(",")));
    assert_eq!(all.master().port(), all.servers()[0].port());
    assert!(all.master().command(&["SET", "a", "1"]).is_ok());
    assert_eq!(all.master().command(&["WAIT", "2", "1000"]).int(), 2);

    let old = all.kill_master();
    let new = all.wait_for_new_master(old);
    assert_ne!(new.port(), old);
    assert_eq!(all.master().port(), new.port());
    assert_eq!(new.command(&["GET", "a"]).text(), "1");
    assert!(new.command(&["SET", "b", "1"]).is_ok());
}

#[test]
fn a_failover_leaves_the_old_master_alive() {
    let all = RedisSentinels::start();
    let old = all.master();
    assert!(old.command(&["SET", "a", "1"]).is_ok());
    let new = all.failover();
    assert_ne!(new.port(), old.port());
    assert_eq!(all.master().port(), new.port());
    assert!(new.command(&["SET", "b", "1"]).is_ok());
    assert_eq!(old.command(&["ROLE"]).array()[0].text(), "slave");
}
