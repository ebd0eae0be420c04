//! What clients are told about the server.

use super::{SYNTAX, Surroundings};
use crate::commands::{COMMANDS, Command, find};
use crate::reply::{self, Protocol};

pub(super) fn hello(id: u64, protocol: Protocol, out: &mut Vec<u8>) {
    reply::map(out, protocol, 7);
    for (name, value) in [("server", "dashpot"), ("version", env!("CARGO_PKG_VERSION"))] {
        reply::bulk(out, name.as_bytes());
        reply::bulk(out, value.as_bytes());
    }
    reply::bulk(out, b"proto");
    reply::integer(out, if protocol == Protocol::Resp3 { 3 } else { 2 });
    reply::bulk(out, b"id");
    reply::integer(out, i64::try_from(id).unwrap_or(i64::MAX));
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply::bulk(out, name.as_bytes());
        reply::bulk(out, value.as_bytes());
    }
    reply::bulk(out, b"modules");
    reply::array(out, 0);
}

/// `CLIENT SETINFO lib-name|lib-ver value`
pub(super) fn set_info(what: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let is_option = |option: &[u8]| what.eq_ignore_ascii_case(option);
    if !is_option(b"lib-name") && !is_option(b"lib-ver") {
        let text = [b"ERR Unrecognized option '", what, b"'"].concat();
        reply::error(out, &text);
    } else if value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        reply::simple(out, "OK");
    } else {
        let what = String::from_utf8_lossy(what).to_lowercase();
        let text = format!("ERR {what} cannot contain spaces, newlines or special characters.");
        reply::error(out, text.as_bytes());
    }
}

/// What redis-benchmark asks for, and complains if there is none: that nothing is saved as Redis saves it.
const SETTINGS: [(&str, &str); 2] = [("appendonly", "no"), ("save", "")];

/// `CONFIG GET name …`
pub(super) fn config(names: &[&[u8]], protocol: Protocol, out: &mut Vec<u8>) {
    let is_asked = |(setting, _): &&(&str, &str)| {
        names.iter().any(|name| name.eq_ignore_ascii_case(setting.as_bytes()))
    };
    reply::map(out, protocol, SETTINGS.iter().filter(is_asked).count());
    for (setting, value) in SETTINGS.iter().filter(is_asked) {
        reply::bulk(out, setting.as_bytes());
        reply::bulk(out, value.as_bytes());
    }
}

/// `INFO [section …]`
pub(super) fn info(
    wanted: &[&[u8]],
    around: &impl Surroundings,
    protocol: Protocol,
    out: &mut Vec<u8>,
) {
    let everything: [&[u8]; 3] = [b"all", b"everything", b"default"];
    let is = |name: &[u8]| wanted.iter().any(|section| section.eq_ignore_ascii_case(name));
    let is_all = wanted.is_empty() || everything.into_iter().any(is);
    let mut text = String::new();
    for section in around.sections() {
        if is_all || is(section.as_bytes()) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let (first, rest) = section.split_at_checked(1).unwrap_or((section, ""));
            text.push_str(&format!("# {}{rest}\r\n", first.to_uppercase()));
            around.info(section, &mut text);
        }
    }
    reply::verbatim(out, protocol, &text);
}

/// `COMMAND`, and what goes with it.
pub(super) fn commands(command: &Command, rest: &[&[u8]], protocol: Protocol, out: &mut Vec<u8>) {
    let named = rest.get(1..).unwrap_or_default();
    match command.name {
        "command|count" => reply::integer(out, i64::try_from(COMMANDS.len()).unwrap_or(0)),
        "command|docs" => {
            let known: Vec<&Command> = if named.is_empty() {
                COMMANDS.iter().collect()
            } else {
                named.iter().filter_map(|name| find_any(name)).collect()
            };
            reply::map(out, protocol, known.len());
            known.iter().for_each(|one| one.document(protocol, out));
        }
        "command|info" if !named.is_empty() => {
            reply::array(out, named.len());
            for name in named {
                match find_any(name) {
                    Some(one) => one.describe(protocol, out),
                    None => reply::nil(out, protocol),
                }
            }
        }
        "command|list" if !named.is_empty() => reply::error(out, SYNTAX),
        "command|list" => {
            reply::set(out, protocol, COMMANDS.len());
            COMMANDS.iter().for_each(|one| reply::bulk(out, one.name.as_bytes()));
        }
        _ => {
            reply::array(out, COMMANDS.len());
            COMMANDS.iter().for_each(|one| one.describe(protocol, out));
        }
    }
}

/// A command, or one that goes with another, as `client|id`.
fn find_any(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(bar) => find(name.get(..bar)?)?.subcommand(name.get(bar + 1..)?),
        None => find(name),
    }
}
