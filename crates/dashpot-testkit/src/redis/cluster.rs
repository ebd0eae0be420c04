use std::time::Duration;

use super::server::arguments;
use super::slots::id;
use super::{Move, RedisServer, Reply, until};
use crate::on_all_threads;
use crate::process::free_port;

/// How long a cluster may take to agree on something.
const AGREEMENT: Duration = Duration::from_secs(15);

/// Which slots the primaries have at first.
const SHARES: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

/// Three primaries and a replica of each, on loopback.
///
/// A node counts as failed after a second; slots whose primary is gone do not keep the others
/// from being served.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

/// A line of `CLUSTER NODES`: what one node thinks of another, or itself.
struct View {
    port: u16,
    flags: String,
    primary: String,
    epoch: u64,
    slots: Vec<(u16, u16)>,
}

impl RedisCluster {
    /// Starts the nodes and waits until all agree and replicas are in sync.
    ///
    /// # Panics
    /// If there is no `redis-server`, or it takes too long.
    #[must_use]
    pub fn start() -> Self {
        let nodes = on_all_threads(6, |_| start_node());
        for (node, (first, last)) in nodes.iter().zip(SHARES) {
            expect_ok(node, &["CLUSTER", "ADDSLOTSRANGE", first, last]);
        }
        for (node, epoch) in nodes.iter().zip(1..) {
            expect_ok(node, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]);
        }
        let cluster = Self { nodes };
        cluster.introduce();
        let (primaries, replicas) = cluster.nodes.split_at(3);
        for (primary, replica) in primaries.iter().zip(replicas) {
            expect_ok(replica, &["CLUSTER", "REPLICATE", &id(primary)]);
        }
        until("the cluster to be complete", AGREEMENT, || cluster.is_complete().then_some(()));
        cluster
    }

    /// All nodes, dead ones included; at first, three primaries and then their replicas.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// `redis-cluster://127.0.0.1:PORT,127.0.0.1:PORT,…`, with all nodes.
    #[must_use]
    pub fn url(&self) -> String {
        let addresses: Vec<_> = self.nodes.iter().map(RedisServer::address).collect();
        format!("redis-cluster://{}", addresses.join(","))
    }

    /// The node that serves a slot, as it says itself; the latest, if two of them do.
    ///
    /// # Panics
    /// If no node does for fifteen seconds.
    #[must_use]
    pub fn primary_of(&self, slot: u16) -> &RedisServer {
        until("a primary of the slot", AGREEMENT, || {
            let claims = self.nodes.iter().filter_map(|node| {
                let own = myself(node)?;
                own.serves(slot).then_some((own.epoch, node))
            });
            claims.max_by_key(|(epoch, _)| *epoch).map(|(_, node)| node)
        })
    }

    /// A replica of the slot's primary that is in sync.
    ///
    /// # Panics
    /// If there is none for fifteen seconds.
    #[must_use]
    pub fn replica_of(&self, slot: u16) -> &RedisServer {
        let primary = id(self.primary_of(slot));
        until("a replica of the slot", AGREEMENT, || {
            let is_one = |node: &&RedisServer| {
                myself(node).is_some_and(|own| own.primary == primary) && in_sync(node)
            };
            self.nodes.iter().find(is_one)
        })
    }

    /// Kills the slot's primary, and says which it was.
    ///
    /// # Panics
    /// If there is none.
    pub fn kill_primary_of(&self, slot: u16) -> u16 {
        let primary = self.primary_of(slot);
        primary.kill();
        primary.port()
    }

    /// Waits until another node than the one with this port serves the slot and all nodes that
    /// live say so, and says which it is.
    ///
    /// # Panics
    /// If that takes more than fifteen seconds.
    pub fn wait_for_failover(&self, slot: u16, old_port: u16) -> &RedisServer {
        until("another node to take over", AGREEMENT, || {
            let others = self.nodes.iter().filter(|node| node.port() != old_port);
            let mut claims = others.filter(|node| myself(node).is_some_and(|own| own.serves(slot)));
            let new = claims.next()?;
            self.all_say(slot, new.port()).then_some(new)
        })
    }

    /// Moves a slot to the primary with this port, while it is used, and waits until all nodes
    /// know.
    ///
    /// # Panics
    /// If there is no such primary, or it takes too long.
    pub fn move_slot(&self, slot: u16, to_port: u16) {
        self.begin_move(slot, to_port).finish();
    }

    /// Begins to move a slot to the primary with this port: what follows is up to the test.
    ///
    /// # Panics
    /// If there is no such primary.
    pub fn begin_move(&self, slot: u16, to_port: u16) -> Move<'_> {
        let to = self.nodes.iter().find(|node| node.port() == to_port);
        Move::begin(self, slot, self.primary_of(slot), to.expect("a node has this port"))
    }

    /// Those keys on any primary that never expire, in order.
    ///
    /// # Panics
    /// If a primary that lives does not answer.
    #[must_use]
    pub fn keys_without_ttl(&self) -> Vec<Vec<u8>> {
        let is_primary = |node: &&RedisServer| myself(node).is_some_and(|own| own.is_primary());
        let primaries = self.nodes.iter().filter(is_primary);
        let mut keys: Vec<_> = primaries.flat_map(RedisServer::keys_without_ttl).collect();
        keys.sort();
        keys
    }

    /// Whether all nodes that live say that this one serves the slot.
    pub(super) fn all_say(&self, slot: u16, port: u16) -> bool {
        self.nodes.iter().filter_map(views).all(|views| {
            views.iter().any(|view| view.port == port && view.is_primary() && view.serves(slot))
        })
    }

    /// Makes all nodes known to each other.
    fn introduce(&self) {
        let first = &self.nodes[0];
        for node in &self.nodes[1..] {
            let bus = node.command(&["CONFIG", "GET", "cluster-port"]).array()[1].text();
            let port = node.port().to_string();
            expect_ok(first, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        until("all nodes to know each other", AGREEMENT, || {
            let known = |node| views(node).is_some_and(|views| views.iter().all(View::is_known));
            let count = |node| views(node).map_or(0, |views| views.len());
            self.nodes.iter().all(|node| count(node) == 6 && known(node)).then_some(())
        });
    }

    fn is_complete(&self) -> bool {
        let ready = |node: &RedisServer| {
            let info = node.command(&["CLUSTER", "INFO"]).text();
            let replicas = views(node)
                .map_or(0, |views| views.iter().filter(|view| !view.is_primary()).count());
            info.contains("cluster_state:ok")
                && info.contains("cluster_slots_ok:16384")
                && replicas == 3
        };
        self.nodes.iter().all(ready) && self.nodes[3..].iter().all(in_sync)
    }
}

impl View {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(1);
        let (address, _) = fields.next()?.split_once('@')?;
        let port = address.rsplit_once(':')?.1.parse().ok()?;
        let (flags, primary) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let epoch = fields.nth(2)?.parse().ok()?;
        // Slots on their way are in brackets; they are listed as served as well.
        let slots = fields.skip(1).filter(|slots| !slots.starts_with('['));
        let slots = slots.filter_map(|slots| {
            let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        Some(Self { port, flags, primary, epoch, slots: slots.collect() })
    }

    fn is_primary(&self) -> bool {
        self.flags.contains("master")
    }

    /// Whether they have shaken hands.
    fn is_known(&self) -> bool {
        !self.flags.contains("handshake")
    }

    fn serves(&self, slot: u16) -> bool {
        self.is_primary() && self.slots.iter().any(|&(first, last)| (first..=last).contains(&slot))
    }
}

fn start_node() -> RedisServer {
    RedisServer::launch(&[], |port, _| {
        let bus = free_port().to_string();
        let settings = [
            ["--cluster-enabled", "yes"],
            ["--cluster-port", &bus],
            ["--cluster-node-timeout", "1000"],
            ["--cluster-require-full-coverage", "no"],
            // However long a replica has not heard from its primary, it may take over.
            ["--cluster-replica-validity-factor", "0"],
            // And it stays with its primary.
            ["--cluster-allow-replica-migration", "no"],
        ];
        arguments(port, settings.as_flattened())
    })
}

/// What a node thinks of all of them, if it lives.
fn views(node: &RedisServer) -> Option<Vec<View>> {
    let Ok(Reply::Text(nodes)) = node.try_command(&["CLUSTER", "NODES"]) else { return None };
    String::from_utf8_lossy(&nodes).lines().map(View::parse).collect()
}

/// What a node thinks of itself, if it lives.
fn myself(node: &RedisServer) -> Option<View> {
    views(node)?.into_iter().find(|view| view.flags.contains("myself"))
}

/// Whether a replica follows its primary.
pub(super) fn in_sync(node: &RedisServer) -> bool {
    match node.try_command(&["INFO", "replication"]) {
        Ok(Reply::Text(info)) => String::from_utf8_lossy(&info).contains("master_link_status:up"),
        _ => false,
    }
}

fn expect_ok(node: &RedisServer, command: &[&str]) {
    let reply = node.command(command);
    assert!(reply.is_ok(), "{command:?}: {reply:?}");
}
