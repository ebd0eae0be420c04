//! What there is not, in Redis's own words.

use crate::commands::Command;
use crate::reply;

/// How much is told of what was said.
const TOLD: usize = 128;

/// A command that there is not.
#[cold]
pub(super) fn command(name: &[u8], rest: &[&[u8]], out: &mut Vec<u8>) {
    let mut told = Vec::new();
    for argument in rest {
        let Some(room) = TOLD.checked_sub(told.len()).filter(|room| *room > 0) else { break };
        told.push(b'\'');
        told.extend_from_slice(text(argument, room));
        told.extend_from_slice(b"' ");
    }
    let parts: [&[u8]; 4] =
        [b"ERR unknown command '", text(name, TOLD), b"', with args beginning with: ", &told];
    reply::error(out, &parts.concat());
}

/// One that does not go with another.
#[cold]
pub(super) fn subcommand(command: &Command, name: &[u8], out: &mut Vec<u8>) {
    let parent = command.name.to_ascii_uppercase();
    let parts: [&[u8]; 5] =
        [b"ERR unknown subcommand '", text(name, TOLD), b"'. Try ", parent.as_bytes(), b" HELP."];
    reply::error(out, &parts.concat());
}

/// Too many arguments, or too few.
#[cold]
pub(super) fn count(command: &Command, out: &mut Vec<u8>) {
    let text = format!("ERR wrong number of arguments for '{}' command", command.name);
    reply::error(out, text.as_bytes());
}

/// So much of it, and nothing from a zero on.
fn text(bytes: &[u8], most: usize) -> &[u8] {
    let end = bytes.iter().take(most).position(|byte| *byte == 0);
    bytes.get(..end.unwrap_or(most)).unwrap_or(bytes)
}
