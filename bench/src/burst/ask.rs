//! One question, and whether it is admitted.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::Duration;

use ::governor::DefaultKeyedRateLimiter;
use ::limitador::RateLimiter;
use ::limitador::limit::{Context, Expression, Limit};
use dashpot_testkit::RedisServer;

pub(crate) trait Ask {
    fn is_admitted(&mut self) -> bool;
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-key: k\r\n\r\n")
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Over HTTP, on a connection that is kept; who is admitted reads these words in the answer.
pub(crate) fn http(port: u16, request: &str, words: &'static str) -> Box<dyn Ask> {
    Box::new(Http { port, stream: None, request: request.as_bytes().to_vec(), words })
}

struct Http {
    port: u16,
    stream: Option<TcpStream>,
    request: Vec<u8>,
    words: &'static str,
}

impl Ask for Http {
    fn is_admitted(&mut self) -> bool {
        let port = self.port;
        let mut stream = self.stream.take().unwrap_or_else(|| {
            let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody who listens");
            stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
            stream.set_nodelay(true).expect("an option");
            stream
        });
        stream.write_all(&self.request).expect("somebody who reads");
        let (answer, is_kept) = answer(&mut stream);
        if is_kept {
            self.stream = Some(stream);
        }
        answer.contains(self.words)
    }
}

/// One answer, and whether its connection is kept.
fn answer(stream: &mut TcpStream) -> (String, bool) {
    let (mut read, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut part).expect("an answer in time");
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&read);
        let head =
            text.split_once("\r\n\r\n").map(|(head, body)| (head.to_ascii_lowercase(), body));
        let Some((head, body)) = head else {
            assert!(count > 0, "the connection ended before an answer did");
            continue;
        };
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
        };
        let length = field("content-length:").and_then(|value| value.parse::<usize>().ok());
        let is_whole = match length {
            Some(length) => body.len() >= length,
            None if field("transfer-encoding:").is_some() => body.ends_with("0\r\n\r\n"),
            None => count == 0,
        };
        if is_whole || count == 0 {
            return (
                text.into_owned(),
                count > 0 && field("connection:").as_deref() != Some("close"),
            );
        }
    }
}

/// governor's keyed limiter.
pub(crate) fn governor(each_second: u32) -> Box<dyn Ask> {
    let most = NonZeroU32::new(each_second).expect("more than none");
    Box::new(Governor(::governor::RateLimiter::keyed(::governor::Quota::per_second(most))))
}

struct Governor(DefaultKeyedRateLimiter<String>);

impl Ask for Governor {
    fn is_admitted(&mut self) -> bool {
        self.0.check_key(&"k".to_owned()).is_ok()
    }
}

/// limitador's library in memory.
pub(crate) fn limitador(most: u64, seconds: u64) -> Box<dyn Ask> {
    let limiter = RateLimiter::new(1000);
    let variable = Expression::parse("descriptors[0].user").expect("a right expression");
    limiter.add_limit(Limit::new("bench", most, seconds, [], [variable]));
    Box::new(Limitador(limiter))
}

struct Limitador(RateLimiter);

impl Ask for Limitador {
    fn is_admitted(&mut self) -> bool {
        let mut context = Context::default();
        let facts = HashMap::from([("user".to_owned(), "k".to_owned())]);
        context.list_binding("descriptors".to_owned(), vec![facts]);
        let answer = self.0.check_rate_limited_and_update(&"bench".into(), &context, 1);
        !answer.expect("it answers").limited
    }
}

/// The least that a limiter on Redis does, exactly.
pub(crate) fn redis_gcra() -> Box<dyn Ask> {
    lua(crate::redis::MINIMAL, &["20000", "1000000"])
}

/// What is written most often.
pub(crate) fn redis_incr() -> Box<dyn Ask> {
    lua(
        "local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], 1000) end
if n > tonumber(ARGV[1]) then return {0, 0} end
return {1, 0}",
        &["50"],
    )
}

fn lua(script: &str, arguments: &[&'static str]) -> Box<dyn Ask> {
    let server = RedisServer::start();
    let hash = server.command(&["SCRIPT", "LOAD", script]).text();
    let client = redis::Client::open(server.url()).expect("a right URL");
    let connection = client.get_connection().expect("Redis answers");
    Box::new(Lua { connection, hash, arguments: arguments.to_vec(), _server: server })
}

struct Lua {
    connection: redis::Connection,
    hash: String,
    arguments: Vec<&'static str>,
    _server: RedisServer,
}

impl Ask for Lua {
    fn is_admitted(&mut self) -> bool {
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.hash).arg(1).arg("k").arg(&self.arguments);
        let (admitted, _): (i64, redis::Value) =
            call.query(&mut self.connection).expect("Redis answers");
        admitted == 1
    }
}
