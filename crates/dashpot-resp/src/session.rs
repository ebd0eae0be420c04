//! One client: what it has said so far, and what it is answered.

mod about;
mod unknown;

use crate::commands::{self, Command};
use crate::reply::{self, Protocol};
use crate::request::{Limits, ProtocolError, Request};
use crate::throttle::Throttle;

/// What a session knows of the server around it.
pub trait Surroundings {
    /// Whether a password has to be said.
    fn has_password(&self) -> bool {
        false
    }

    /// Whether this is the password. To be compared in constant time.
    fn is_password(&self, said: &[u8]) -> bool {
        let _ = said;
        false
    }

    /// Writes lines for a section of `INFO`, as `name:value\r\n`; nothing if there is no such section.
    fn info(&self, section: &str, out: &mut String) {
        let _ = (section, out);
    }

    /// The sections of `INFO`, in order.
    fn sections(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// The answer is written.
    Go,
    /// This is to be decided, and the answer written.
    Throttle(Throttle<'a>),
    /// The answer is written, and was the last.
    End,
}

/// One client: what it has said so far.
#[derive(Clone, Debug)]
pub struct Session {
    id: u64,
    protocol: Protocol,
    is_known: bool,
    name: Box<[u8]>,
}

impl Session {
    /// A client that has said nothing. The number tells it from others.
    #[must_use]
    pub fn new(id: u64, around: &impl Surroundings) -> Self {
        let is_known = !around.has_password();
        Self { id, protocol: Protocol::Resp2, is_known, name: Box::default() }
    }

    /// Whether it may ask.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// How much it may say at once.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        if self.is_known { Limits::KNOWN } else { Limits::STRANGER }
    }

    /// Writes why it is not understood. A browser hears nothing.
    pub fn refuse(error: ProtocolError, out: &mut Vec<u8>) {
        match error {
            ProtocolError::Http => {}
            // As it is, whatever it is.
            ProtocolError::NoArgument(byte) => {
                let text = [b"ERR Protocol error: expected '$', got '", &[byte][..], b"'"].concat();
                reply::error(out, &text);
            }
            _ => reply::error(out, format!("ERR Protocol error: {error}").as_bytes()),
        }
    }

    /// Answers a command.
    #[inline]
    pub fn answer<'a>(
        &mut self,
        request: Request<'a>,
        around: &impl Surroundings,
        out: &mut Vec<u8>,
    ) -> Next<'a> {
        let Some(name) = request.get(0) else { return Next::Go };
        if self.is_known && is_throttle(name) {
            return match Throttle::read(request) {
                Ok(asked) => Next::Throttle(asked),
                Err(wrong) => {
                    wrong.answer(out);
                    Next::Go
                }
            };
        }
        let rest: Vec<&[u8]> = request.arguments().skip(1).collect();
        self.answer_other(name, &rest, around, out)
    }

    #[inline(never)]
    fn answer_other(
        &mut self,
        name: &[u8],
        rest: &[&[u8]],
        around: &impl Surroundings,
        out: &mut Vec<u8>,
    ) -> Next<'static> {
        let Some(command) = commands::find(name) else {
            unknown::command(name, rest, out);
            return Next::Go;
        };
        // Whatever goes with it.
        if command.name == "quit" {
            reply::simple(out, "OK");
            return Next::End;
        }
        let command = match rest.first() {
            Some(sub) if !command.subcommands.is_empty() => match command.subcommand(sub) {
                Some(command) => command,
                None => {
                    unknown::subcommand(command, sub, out);
                    return Next::Go;
                }
            },
            _ => command,
        };
        if !command.takes(rest.len() + 1) {
            unknown::count(command, out);
            return Next::Go;
        }
        if !self.is_known && !command.is_for_strangers {
            reply::error(out, b"NOAUTH Authentication required.");
            return Next::Go;
        }
        self.carry_out(command, rest, around, out);
        Next::Go
    }

    fn carry_out(
        &mut self,
        command: &Command,
        rest: &[&[u8]],
        around: &impl Surroundings,
        out: &mut Vec<u8>,
    ) {
        let protocol = self.protocol;
        match (command.name, rest) {
            ("ping", []) => reply::simple(out, "PONG"),
            ("ping" | "echo", [message]) => reply::bulk(out, message),
            ("ping", _) => unknown::count(command, out),
            ("hello", _) => self.hello(rest, around, out),
            ("auth", [password]) if around.has_password() => {
                self.authenticate(b"default", password, around, out);
            }
            ("auth", [_]) => reply::error(
                out,
                b"ERR AUTH <password> called without any password configured for the default user. \
                  Are you sure your configuration is correct?",
            ),
            ("auth", [user, password]) => self.authenticate(user, password, around, out),
            ("auth", _) => reply::error(out, SYNTAX),
            ("reset", _) => {
                *self = Self::new(self.id, around);
                reply::simple(out, "RESET");
            }
            ("select", [index]) => match crate::number::strict(index) {
                Some(0) => reply::simple(out, "OK"),
                Some(_) => reply::error(out, b"ERR DB index is out of range"),
                None => reply::error(out, b"ERR value is not an integer or out of range"),
            },
            ("client|id", _) => reply::integer(out, i64::try_from(self.id).unwrap_or(i64::MAX)),
            ("client|getname", _) if self.name.is_empty() => reply::nil(out, protocol),
            ("client|getname", _) => reply::bulk(out, &self.name),
            ("client|setname", [_, name]) => self.set_name(name, out),
            ("client|setinfo", [_, what, value]) => about::set_info(what, value, out),
            ("client|no-evict" | "client|no-touch", [_, how]) => {
                if how.eq_ignore_ascii_case(b"on") || how.eq_ignore_ascii_case(b"off") {
                    reply::simple(out, "OK");
                } else {
                    reply::error(out, SYNTAX);
                }
            }
            ("config|get", [_, names @ ..]) => about::config(names, protocol, out),
            ("info", sections) => about::info(sections, around, protocol, out),
            _ => about::commands(command, rest, protocol, out),
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`
    fn hello(&mut self, rest: &[&[u8]], around: &impl Surroundings, out: &mut Vec<u8>) {
        let mut protocol = self.protocol;
        let mut options = rest;
        if let [version, rest @ ..] = rest {
            protocol = match crate::number::strict(version) {
                Some(2) => Protocol::Resp2,
                Some(3) => Protocol::Resp3,
                Some(_) => return reply::error(out, b"NOPROTO unsupported protocol version"),
                None => {
                    let text = b"ERR Protocol version is not an integer or out of range";
                    return reply::error(out, text);
                }
            };
            options = rest;
        }
        let (mut said, mut named) = (None, None);
        while let [option, rest @ ..] = options {
            options = match rest {
                [user, password, rest @ ..] if option.eq_ignore_ascii_case(b"AUTH") => {
                    said = Some((*user, *password));
                    rest
                }
                [name, rest @ ..] if option.eq_ignore_ascii_case(b"SETNAME") => {
                    if let Err(wrong) = check_name(name) {
                        return reply::error(out, wrong);
                    }
                    named = Some(*name);
                    rest
                }
                _ => {
                    let text = [b"ERR Syntax error in HELLO option '", *option, b"'"].concat();
                    return reply::error(out, &text);
                }
            };
        }
        if let Some((user, password)) = said {
            if !Self::is_right(user, password, around) {
                return reply::error(out, WRONG_PASSWORD);
            }
            self.is_known = true;
        }
        if !self.is_known {
            return reply::error(
                out,
                b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
                  AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol \
                  version at the same time",
            );
        }
        if let Some(name) = named {
            self.name = name.into();
        }
        self.protocol = protocol;
        about::hello(self.id, protocol, out);
    }

    fn authenticate(
        &mut self,
        user: &[u8],
        password: &[u8],
        around: &impl Surroundings,
        out: &mut Vec<u8>,
    ) {
        if Self::is_right(user, password, around) {
            self.is_known = true;
            reply::simple(out, "OK");
        } else {
            reply::error(out, WRONG_PASSWORD);
        }
    }

    /// There is one user, and without a password anything will do.
    fn is_right(user: &[u8], password: &[u8], around: &impl Surroundings) -> bool {
        user == b"default" && (!around.has_password() || around.is_password(password))
    }

    fn set_name(&mut self, name: &[u8], out: &mut Vec<u8>) {
        match check_name(name) {
            Ok(()) => {
                self.name = name.into();
                reply::simple(out, "OK");
            }
            Err(wrong) => reply::error(out, wrong),
        }
    }
}

/// Whether this is the command that nearly all are, mostly written in one of two ways.
#[inline]
fn is_throttle(name: &[u8]) -> bool {
    const LOWER: &[u8] = commands::THROTTLE.as_bytes();
    name == b"CL.THROTTLE" || name == LOWER || name.eq_ignore_ascii_case(LOWER)
}

/// Whether a connection can be called so, or why not. An empty name takes it away.
fn check_name(name: &[u8]) -> Result<(), &'static [u8]> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err(b"ERR Client names cannot contain spaces, newlines or special characters.");
    }
    if name.len() > NAME_MAX { Err(b"ERR Client names have at most 256 bytes") } else { Ok(()) }
}

/// The longest name of a connection.
const NAME_MAX: usize = 256;

const SYNTAX: &[u8] = b"ERR syntax error";
const WRONG_PASSWORD: &[u8] = b"WRONGPASS invalid username-password pair or user is disabled.";
