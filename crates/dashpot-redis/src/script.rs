//! The scripts, each known to servers by its hash.

use std::sync::LazyLock;

use redis::{Arg, Cmd};

/// A script that servers run.
#[derive(Debug)]
pub(crate) struct Script {
    text: &'static str,
    hash: String,
}

macro_rules! script {
    ($($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!($file)),+)))
    };
}

pub(crate) static DECIDE: LazyLock<Script> =
    script!("lua/convert.lua", "lua/held.lua", "lua/checks.lua", "lua/decide.lua");
pub(crate) static SETTLE: LazyLock<Script> =
    script!("lua/convert.lua", "lua/held.lua", "lua/settle.lua");
pub(crate) static MANAGE: LazyLock<Script> = script!("lua/held.lua", "lua/manage.lua");
pub(crate) static LEASE: LazyLock<Script> =
    script!("lua/convert.lua", "lua/held.lua", "lua/checks.lua", "lua/lease.lua");
pub(crate) static RENEW: LazyLock<Script> = script!("lua/renew.lua");
pub(crate) static ANNOUNCE: LazyLock<Script> = script!("lua/announce.lua");

/// All of them, for a server to know before it is asked.
pub(crate) fn all() -> [&'static Script; 6] {
    [&DECIDE, &SETTLE, &MANAGE, &LEASE, &RENEW, &ANNOUNCE]
}

impl Script {
    fn new(text: &'static str) -> Self {
        Self { text, hash: redis::Script::new(text).get_hash().to_owned() }
    }

    #[cfg(test)]
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    /// Calls it with these keys, arguments to follow.
    pub(crate) fn call<'k>(&self, keys: impl ExactSizeIterator<Item = &'k [u8]>) -> Cmd {
        let mut command = Cmd::with_capacity(16, 512);
        command.arg("EVALSHA").arg(&self.hash).arg(keys.len());
        for key in keys {
            command.arg(key);
        }
        command
    }

    /// The same call with the script itself, for a server that does not know it (any more).
    pub(crate) fn in_full(command: &Cmd) -> Option<Cmd> {
        let mut arguments = command.args_iter().filter_map(|argument| match argument {
            Arg::Simple(bytes) => Some(bytes),
            _ => None,
        });
        arguments.next().filter(|&name| name == b"EVALSHA")?;
        let hash = arguments.next()?;
        let script = all().into_iter().find(|script| script.hash.as_bytes() == hash)?;
        let mut full = Cmd::with_capacity(16, script.text.len() + 512);
        full.arg("EVAL").arg(script.text);
        for argument in arguments {
            full.arg(argument);
        }
        Some(full)
    }
}
