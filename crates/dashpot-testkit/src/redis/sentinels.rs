use std::fs;
use std::time::Duration;

use super::cluster::in_sync;
use super::{RedisServer, Reply, until};
use crate::on_all_threads;

/// How long sentinels may take to agree on something.
const AGREEMENT: Duration = Duration::from_secs(20);

/// What the sentinels call the master.
const NAME: &str = "mymaster";

/// A master, two replicas, and three sentinels that watch them, two of whom must agree.
#[derive(Debug)]
pub struct RedisSentinels {
    // First, so that nobody fails over while the rest is dropped.
    sentinels: Vec<RedisServer>,
    servers: Vec<RedisServer>,
}

impl RedisSentinels {
    /// Starts all of them and waits until every sentinel knows every other and every server.
    ///
    /// # Panics
    /// If there is no `redis-server`, or it takes too long.
    #[must_use]
    pub fn start() -> Self {
        let master = RedisServer::start();
        let port = master.port().to_string();
        let follow = ["--replicaof", &format!("127.0.0.1 {port}")];
        let mut servers = vec![master];
        servers.extend(on_all_threads(2, |_| RedisServer::with(&follow)));
        until("replicas to be in sync", AGREEMENT, || {
            servers[1..].iter().all(in_sync).then_some(())
        });

        let sentinels = on_all_threads(3, |_| start_sentinel(&port));
        for sentinel in &sentinels {
            // They tell each other every two seconds else, and leave an old master alone for eight.
            let reply = sentinel.command(&["SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200"]);
            assert!(reply.is_ok(), "{reply:?}");
            let reply = sentinel.command(&["SENTINEL", "DEBUG", "INFO-PERIOD", "200"]);
            assert!(reply.is_ok(), "{reply:?}");
        }
        let it = Self { sentinels, servers };
        until("sentinels to know each other", AGREEMENT, || it.is_complete().then_some(()));
        it
    }

    /// The servers, dead ones included; at first, the master and two replicas.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The sentinels.
    #[must_use]
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// `redis-sentinel://127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/mymaster`, with all
    /// sentinels.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.sentinels.iter().map(RedisServer::address).collect();
        format!("redis-sentinel://{}/{NAME}", addresses.join(","))
    }

    /// The master, once all sentinels that live say the same.
    ///
    /// # Panics
    /// If they do not for twenty seconds.
    #[must_use]
    pub fn master(&self) -> &RedisServer {
        until("sentinels to agree", AGREEMENT, || self.agreed())
    }

    /// Kills the master, and says which it was.
    ///
    /// # Panics
    /// If the sentinels know of none.
    pub fn kill_master(&self) -> u16 {
        let master = self.master();
        master.kill();
        master.port()
    }

    /// Waits until all sentinels say that the master is another than the one with this port, and
    /// it takes writes.
    ///
    /// # Panics
    /// If that takes more than twenty seconds.
    pub fn wait_for_new_master(&self, old_port: u16) -> &RedisServer {
        until("another master", AGREEMENT, || {
            let master = self.agreed().filter(|master| master.port() != old_port)?;
            (role(master).as_deref() == Some("master")).then_some(master)
        })
    }

    /// Has the sentinels make another server the master, and waits until the old one, which lives
    /// on, follows it.
    ///
    /// # Panics
    /// If that takes more than twenty seconds.
    pub fn failover(&self) -> &RedisServer {
        let old = self.master();
        until("a sentinel to fail over", AGREEMENT, || {
            // They refuse while they are at it, or know of no good replica yet.
            let ask = |one: &RedisServer| one.try_command(&["SENTINEL", "FAILOVER", NAME]);
            self.sentinels.iter().any(|one| ask(one).is_ok_and(|it| it.is_ok())).then_some(())
        });
        let new = self.wait_for_new_master(old.port());
        until("the old master to follow", AGREEMENT, || {
            (role(old).as_deref() == Some("slave") && in_sync(old)).then_some(())
        });
        new
    }

    fn agreed(&self) -> Option<&RedisServer> {
        let command = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
        let told = self.sentinels.iter().filter_map(|one| one.try_command(&command).ok());
        let mut told = told.map(|reply| match reply {
            Reply::Array(address) => address[1].text().parse().ok(),
            _ => None,
        });
        let port: u16 = told.next()??;
        let agreed = told.all(|other| other == Some(port));
        self.servers.iter().find(|server| agreed && server.port() == port)
    }

    fn is_complete(&self) -> bool {
        let pair = |fields: &[Reply], name: &str| {
            let mut pairs = fields.chunks(2);
            pairs.find(|pair| pair[0].bytes() == name.as_bytes()).map(|pair| pair[1].text())
        };
        self.sentinels.iter().all(|sentinel| {
            let master = sentinel.command(&["SENTINEL", "MASTER", NAME]);
            let is = |name, value: &str| pair(master.array(), name).as_deref() == Some(value);
            let replicas = sentinel.command(&["SENTINEL", "REPLICAS", NAME]);
            let mut replicas = replicas.array().iter().map(Reply::array);
            is("flags", "master")
                && is("num-slaves", "2")
                && is("num-other-sentinels", "2")
                && replicas.all(|one| pair(one, "master-link-status").as_deref() == Some("ok"))
        })
    }
}

fn start_sentinel(master: &str) -> RedisServer {
    RedisServer::launch(&[], |port, directory| {
        let settings = format!(
            "port {port}\n\
             bind 127.0.0.1\n\
             sentinel monitor {NAME} 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds {NAME} 500\n\
             sentinel failover-timeout {NAME} 3000\n\
             sentinel parallel-syncs {NAME} 1\n"
        );
        let file = directory.join("sentinel.conf");
        fs::write(&file, settings).expect("a file for the settings");
        vec![file.display().to_string(), "--sentinel".into()]
    })
}

/// What a server thinks it is, if it lives.
fn role(server: &RedisServer) -> Option<String> {
    match server.try_command(&["ROLE"]) {
        Ok(Reply::Array(role)) => Some(role[0].text()),
        _ => None,
    }
}
