//! What clients may ask for, and what they are told about that.

use crate::reply::{self, Protocol};

/// A command, or one that goes with another.
#[derive(Debug)]
pub(crate) struct Command {
    /// In lower case.
    pub(crate) name: &'static str,
    /// How many arguments, the name included; negative if there may be more.
    pub(crate) arity: i64,
    /// What may be said before a password.
    pub(crate) is_for_strangers: bool,
    /// Whether the first argument is a key.
    pub(crate) has_key: bool,
    pub(crate) summary: &'static str,
    pub(crate) subcommands: &'static [Command],
}

const fn command(name: &'static str, arity: i64, summary: &'static str) -> Command {
    Command { name, arity, is_for_strangers: false, has_key: false, summary, subcommands: &[] }
}

const fn for_strangers(command: Command) -> Command {
    Command { is_for_strangers: true, ..command }
}

const fn with(command: Command, subcommands: &'static [Command]) -> Command {
    Command { subcommands, ..command }
}

pub(crate) const THROTTLE: &str = "cl.throttle";

/// All there are.
pub(crate) static COMMANDS: [Command; 12] = [
    for_strangers(command("auth", -2, "Says the password")),
    Command { has_key: true, ..command(THROTTLE, -1, "Takes units of a key, if they are there") },
    with(
        command("client", -2, "About this connection"),
        &[
            command("client|getname", 2, "The name of this connection"),
            command("client|id", 2, "The number of this connection"),
            command("client|no-evict", 3, "Nobody is evicted here"),
            command("client|no-touch", 3, "Nothing is touched here"),
            command("client|setinfo", 4, "Says which library this is"),
            command("client|setname", 3, "Names this connection"),
        ],
    ),
    with(
        command("command", -1, "About commands"),
        &[
            command("command|count", 2, "How many commands there are"),
            command("command|docs", -2, "What commands do"),
            command("command|info", -2, "How commands are called"),
            command("command|list", -2, "The names of commands"),
        ],
    ),
    with(command("config", -2, "Settings"), &[command("config|get", -3, "There are none to see")]),
    command("echo", 2, "Says what was said"),
    for_strangers(command("hello", -1, "Chooses the version of the protocol")),
    command("info", -1, "About the server"),
    command("ping", -1, "Says that somebody is there"),
    for_strangers(command("quit", -1, "Ends the connection")),
    for_strangers(command("reset", 1, "Makes the connection as it was")),
    command("select", 2, "Chooses the only database"),
];

/// The command of this name, in upper or lower case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

impl Command {
    /// The one that goes with it and is called so.
    pub(crate) fn subcommand(&self, name: &[u8]) -> Option<&'static Command> {
        self.subcommands.iter().find(|one| one.own_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Its name without that of the one it goes with.
    pub(crate) fn own_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, own)| own)
    }

    /// Whether it can be called with so many arguments, the name included.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    /// What `COMMAND INFO` says.
    pub(crate) fn describe(&self, protocol: Protocol, out: &mut Vec<u8>) {
        reply::array(out, 10);
        reply::bulk(out, self.name.as_bytes());
        reply::integer(out, self.arity);
        let flags: &[&str] = match (self.has_key, self.is_for_strangers) {
            (true, _) => &["write", "fast"],
            (false, true) => &["noscript", "loading", "stale", "fast", "no_auth"],
            (false, false) => &["loading", "stale", "fast"],
        };
        reply::set(out, protocol, flags.len());
        flags.iter().for_each(|flag| reply::simple(out, flag));
        for number in [i64::from(self.has_key); 3] {
            reply::integer(out, number);
        }
        // Categories, tips and specifications of keys.
        reply::set(out, protocol, 0);
        reply::array(out, 0);
        reply::array(out, 0);
        reply::array(out, self.subcommands.len());
        self.subcommands.iter().for_each(|one| one.describe(protocol, out));
    }

    /// What `COMMAND DOCS` says, its name first.
    pub(crate) fn document(&self, protocol: Protocol, out: &mut Vec<u8>) {
        reply::bulk(out, self.name.as_bytes());
        let has_more = !self.subcommands.is_empty();
        reply::map(out, protocol, 2 + usize::from(has_more));
        reply::bulk(out, b"summary");
        reply::bulk(out, self.summary.as_bytes());
        reply::bulk(out, b"group");
        reply::bulk(out, if self.has_key { b"throttle" } else { b"connection" });
        if has_more {
            reply::bulk(out, b"subcommands");
            reply::map(out, protocol, self.subcommands.len());
            self.subcommands.iter().for_each(|one| one.document(protocol, out));
        }
    }
}
