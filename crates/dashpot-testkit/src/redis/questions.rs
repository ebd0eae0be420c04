//! What tests often want to know of a server.

use std::collections::BTreeSet;

use super::RedisServer;

impl RedisServer {
    /// One field of `INFO all`.
    ///
    /// # Panics
    /// If there is no such field, or as [`command`](Self::command) does.
    #[must_use]
    pub fn info(&self, field: &str) -> String {
        let all = self.command(&["INFO", "all"]).text();
        let value = field_of(&all, field);
        value.unwrap_or_else(|| panic!("INFO has no {field}: {all}")).to_owned()
    }

    /// All keys there are, in order.
    ///
    /// # Panics
    /// As [`command`](Self::command) does.
    #[must_use]
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let reply = self.command(&[b"SCAN", cursor.as_slice(), b"COUNT", b"1000"]);
            let (next, found) = (reply.array()[0].bytes(), reply.array()[1].array());
            keys.extend(found.iter().map(|key| key.bytes().to_vec()));
            if next == b"0" {
                return keys.into_iter().collect();
            }
            cursor = next.to_vec();
        }
    }

    /// Those keys that never expire, in order.
    ///
    /// # Panics
    /// As [`command`](Self::command) does.
    #[must_use]
    pub fn keys_without_ttl(&self) -> Vec<Vec<u8>> {
        let mut keys = self.keys();
        let mut eternal = Vec::new();
        for some in keys.chunks(1000) {
            let asked: Vec<_> = some.iter().map(|key| vec![b"PTTL".as_slice(), key]).collect();
            let replies = self.on_connection(|connection| connection.commands(&asked));
            let replies = replies.unwrap_or_else(|error| panic!("{}: {error}", self.address()));
            eternal.extend(replies.iter().map(|reply| reply.int() == -1));
        }
        let mut eternal = eternal.into_iter();
        keys.retain(|_| eternal.next() == Some(true));
        keys
    }
}

/// One field of what `INFO` says.
pub(super) fn field_of<'a>(info: &'a str, field: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
}
