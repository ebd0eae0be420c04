//! Every answer is one that clients can read, in both versions of the protocol.

use dashpot::{Check, MemoryStore};
use dashpot_resp::{Limits, Next, Reader, Session, Surroundings};
use proptest::collection::vec;
use proptest::prelude::*;
use redis_protocol::{resp2, resp3};

struct Around {
    password: Option<&'static str>,
}

impl Surroundings for Around {
    fn has_password(&self) -> bool {
        self.password.is_some()
    }

    fn is_password(&self, said: &[u8]) -> bool {
        self.password.is_some_and(|password| password.as_bytes() == said)
    }

    fn sections(&self) -> &'static [&'static str] {
        &["server", "clients"]
    }

    fn info(&self, section: &str, out: &mut String) {
        out.push_str(&format!("about:{section}\r\n"));
    }
}

const OPEN: Around = Around { password: None };
const CLOSED: Around = Around { password: Some("sesame") };

/// A client and a server without a connection between them.
struct Talk {
    session: Session,
    around: Around,
    store: MemoryStore,
}

impl Talk {
    fn new(around: Around) -> Self {
        Self { session: Session::new(7, &around), around, store: MemoryStore::new() }
    }

    fn say(&mut self, input: &[u8]) -> Vec<u8> {
        let (mut at, mut out, mut reader) = (0, Vec::new(), Reader::default());
        while let Some((request, length)) =
            reader.read(&input[at..], Limits::KNOWN).expect("a right command")
        {
            at += length;
            match self.session.answer(request, &self.around, &mut out) {
                Next::Go => {}
                Next::End => break,
                Next::Throttle(asked) => match asked.terms.policy("t") {
                    Ok(policy) => {
                        let check = Check::new(&policy, asked.key).cost(asked.quantity);
                        asked.answer(&self.store.decide_now(&[check]), &mut out);
                    }
                    Err(wrong) => wrong.answer(&mut out),
                },
            }
        }
        out
    }

    fn text(&mut self, line: &str) -> String {
        String::from_utf8(self.say(format!("{line}\r\n").as_bytes())).unwrap()
    }
}

const WORDS: &[&str] = &[
    "AUTH",
    "CL.THROTTLE",
    "CLIENT",
    "COMMAND",
    "CONFIG",
    "ECHO",
    "HELLO",
    "INFO",
    "PING",
    "RESET",
    "SELECT",
    "GET",
    "SETNAME",
    "GETNAME",
    "SETINFO",
    "ID",
    "NO-EVICT",
    "COUNT",
    "DOCS",
    "LIST",
    "lib-name",
    "server",
    "all",
    "save",
    "ping",
    "client|id",
    "default",
    "sesame",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "60",
    "9223372036854775807",
    "-9223372036854775808",
    "x y",
    "",
    "\r\n",
    "\0",
    "é",
];

fn command() -> impl Strategy<Value = Vec<&'static str>> {
    vec(prop::sample::select(WORDS), 1..7)
}

fn frame(words: &[&str]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", words.len());
    for word in words {
        frame.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    frame.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_command_gets_one_answer_that_can_be_read(
        commands in vec(command(), 1..20),
        is_closed in any::<bool>(),
    ) {
        let mut talk = Talk::new(if is_closed { CLOSED } else { OPEN });
        let mut is_three = false;
        for command in commands {
            let answer = talk.say(&frame(&command));
            match (command[0], answer.first()) {
                ("HELLO", Some(b'%')) => is_three = true,
                ("HELLO", Some(b'*')) => is_three = false,
                ("RESET", Some(b'+')) => is_three = false,
                _ => {}
            }
            let length = if is_three {
                resp3::decode::complete::decode(&answer).expect("an answer").map(|read| read.1)
            } else {
                resp2::decode::decode(&answer).expect("an answer").map(|read| read.1)
            };
            prop_assert_eq!(length, Some(answer.len()), "{:?}", command);
        }
    }
}

#[test]
fn hello_chooses_the_version() {
    let mut talk = Talk::new(OPEN);
    assert!(talk.text("HELLO").starts_with("*14\r\n$6\r\nserver\r\n$7\r\ndashpot\r\n"));
    assert!(talk.text("HELLO 3").starts_with("%7\r\n"));
    assert_eq!(talk.text("CLIENT GETNAME"), "_\r\n");
    assert_eq!(talk.text("CONFIG GET maxmemory"), "%0\r\n");
    assert_eq!(talk.text("CONFIG GET save"), "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(talk.text("INFO clients"), "=30\r\ntxt:# Clients\r\nabout:clients\r\n\r\n");
    assert!(talk.text("HELLO 4").starts_with("-NOPROTO "));
    assert_eq!(talk.text("CLIENT GETNAME"), "_\r\n");
    assert!(talk.text("HELLO 2 SETNAME me").starts_with("*14\r\n"));
    assert_eq!(talk.text("CLIENT GETNAME"), "$2\r\nme\r\n");
    assert_eq!(talk.text("RESET"), "+RESET\r\n");
    assert_eq!(talk.text("CLIENT GETNAME"), "$-1\r\n");
    assert_eq!(talk.text("CLIENT ID"), ":7\r\n");
}

#[test]
fn nothing_is_done_for_a_stranger() {
    let mut talk = Talk::new(CLOSED);
    let noauth = "-NOAUTH Authentication required.\r\n";
    for command in ["PING", "CL.THROTTLE a 1 1 60", "CL.THROTTLE", "INFO", "COMMAND", "CLIENT ID"] {
        assert_eq!(talk.text(command), noauth, "{command}");
    }
    assert!(talk.text("HELLO 3").starts_with("-NOAUTH HELLO must be called"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for said in ["AUTH open", "AUTH default open", "AUTH other sesame", "HELLO 2 AUTH default open"]
    {
        assert_eq!(talk.text(said), wrong, "{said}");
    }
    assert_eq!(talk.text("PING"), noauth);
    assert_eq!(talk.text("AUTH sesame"), "+OK\r\n");
    assert_eq!(talk.text("CL.THROTTLE a 1 1 60"), "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:60\r\n");
    // A wrong one afterwards takes nothing away, as with Redis.
    assert_eq!(talk.text("AUTH open"), wrong);
    assert_eq!(talk.text("PING"), "+PONG\r\n");
    assert_eq!(talk.text("RESET"), "+RESET\r\n");
    assert_eq!(talk.text("PING"), noauth);
    assert!(talk.text("HELLO 3 AUTH default sesame").starts_with("%7\r\n"));
    assert_eq!(talk.text("PING"), "+PONG\r\n");
}

#[test]
fn quit_is_the_last_word() {
    let mut talk = Talk::new(CLOSED);
    assert_eq!(talk.say(b"QUIT\r\nPING\r\n"), b"+OK\r\n");
}
