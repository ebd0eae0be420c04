//! Which of a cluster's slots a key is in, and moving one of them while it is used.

use std::time::Duration;

use super::{RedisCluster, RedisServer, Reply, until};

/// The slot of a key: of what is between the first braces, if that is something, else of all of
/// it.
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    let tag = || {
        let start = key.iter().position(|&byte| byte == b'{')? + 1;
        let length = key[start..].iter().position(|&byte| byte == b'}')?;
        (length > 0).then(|| &key[start..start + length])
    };
    crc16(tag().unwrap_or(key)) % 16384
}

/// XMODEM's, which Redis chose.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// A slot on its way from one primary to another, made by
/// [`begin_move`](RedisCluster::begin_move).
///
/// Until it is [finished](Self::finish), the old primary serves the keys it still has and sends
/// clients on with `ASK` for others.
#[must_use = "a slot stays on its way until it is finished"]
#[derive(Debug)]
pub struct Move<'a> {
    cluster: &'a RedisCluster,
    slot: String,
    from: &'a RedisServer,
    to: &'a RedisServer,
}

impl<'a> Move<'a> {
    pub(super) fn begin(
        cluster: &'a RedisCluster,
        slot: u16,
        from: &'a RedisServer,
        to: &'a RedisServer,
    ) -> Self {
        let it = Self { cluster, slot: slot.to_string(), from, to };
        it.set_slot(to, &["IMPORTING", &id(from)]);
        it.set_slot(from, &["MIGRATING", &id(to)]);
        it
    }

    /// Moves up to so many keys, and says how many there were to move.
    ///
    /// # Panics
    /// If a server does not do as it is told.
    pub fn migrate_keys(&self, count: usize) -> usize {
        let count = count.to_string();
        let keys = self.from.command(&["CLUSTER", "GETKEYSINSLOT", &self.slot, &count]);
        let keys: Vec<_> = keys.array().iter().map(Reply::bytes).collect();
        if keys.is_empty() {
            return 0;
        }
        let port = self.to.port().to_string();
        let mut command: Vec<&[u8]> = vec![b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"", b"0"];
        command.extend([b"5000".as_slice(), b"KEYS"]);
        command.extend(&keys);
        match self.from.command(&command) {
            // They may all have expired meanwhile.
            Reply::Text(_) => keys.len(),
            other => panic!("keys cannot be moved: {other:?}"),
        }
    }

    /// Moves the keys that are left, a few at a time, gives the slot away and waits until all
    /// nodes know.
    ///
    /// # Panics
    /// If that takes more than ten seconds.
    pub fn finish(self) {
        while self.migrate_keys(10) > 0 {}
        let new = id(self.to);
        self.set_slot(self.to, &["NODE", &new]);
        self.set_slot(self.from, &["NODE", &new]);
        let slot = self.slot.parse().expect("it is a number");
        until("all nodes to know where the slot is", Duration::from_secs(10), || {
            self.cluster.all_say(slot, self.to.port()).then_some(())
        });
    }

    fn set_slot(&self, node: &RedisServer, state: &[&str]) {
        let command = [&["CLUSTER", "SETSLOT", &self.slot], state].concat();
        let reply = node.command(&command);
        assert!(reply.is_ok(), "{command:?}: {reply:?}");
    }
}

/// What a cluster calls a node.
pub(super) fn id(node: &RedisServer) -> String {
    node.command(&["CLUSTER", "MYID"]).text()
}
