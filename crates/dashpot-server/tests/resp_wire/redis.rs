//! The same said to dashpot and to the real redis-server.

use std::net::SocketAddr;

use dashpot_testkit::RedisServer;

use crate::reply::shown;
use crate::scene::{Scene, told, words};

pub(crate) struct Pair {
    redis: RedisServer,
    pub(crate) dashpot: Scene,
}

impl Pair {
    pub(crate) fn start() -> Self {
        // There is one database here, and no more.
        Self { redis: RedisServer::with(&["--databases", "1"]), dashpot: Scene::start(&[]) }
    }

    pub(crate) fn with_password(password: &str) -> Self {
        let redis = RedisServer::with(&["--databases", "1", "--requirepass", password]);
        Self { redis, dashpot: Scene::start(&["--resp-password", password]) }
    }

    pub(crate) fn redis(&self) -> SocketAddr {
        self.redis.address().parse().unwrap()
    }

    /// Each of these, over a connection of its own, is answered with the same bytes by both.
    #[track_caller]
    pub(crate) fn same<B: AsRef<[u8]>>(&self, cases: &[B]) {
        let mut wrong = Vec::new();
        for case in cases.iter().map(AsRef::as_ref) {
            let (expected, found) = (told(self.redis(), case), told(self.dashpot.resp, case));
            let (expected, found) = (of_any_version(&expected), of_any_version(&found));
            println!("{}\n    {}", shown(case), shown(&expected));
            if found != expected {
                let (case, expected, found) = (shown(case), shown(&expected), shown(&found));
                wrong.push(format!("{case}\n    Redis:   {expected}\n    dashpot: {found}\n"));
            }
        }
        let count = wrong.len();
        assert!(wrong.is_empty(), "{count} of {}:\n{}", cases.len(), wrong.concat());
    }

    /// The same for commands that are words with spaces between them.
    #[track_caller]
    pub(crate) fn same_words(&self, cases: &[&str]) {
        self.same(&cases.iter().map(|case| words(case)).collect::<Vec<_>>());
    }
}

/// One text has changed a little since Redis 7.0, and either is fine.
fn of_any_version(said: &[u8]) -> Vec<u8> {
    let (newer, older) =
        (b"otherwise the HELLO <proto> AUTH", b"otherwise the HELLO AUTH".as_slice());
    match said.windows(newer.len()).position(|found| found == newer) {
        Some(at) => [&said[..at], older, &said[at + newer.len()..]].concat(),
        None => said.to_vec(),
    }
}
