//! Everything that runs: a Redis cluster, two services and a gateway on it, a service in memory, a backend, and
//! networks between them that can be broken.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use dashpot_testkit::process::{TemporaryDirectory, free_port};
use dashpot_testkit::{Proxy, RedisCluster};

use crate::backend::Seen;
use crate::instance::Instance;
use crate::rules::{ALONE, FLEET};

const STATE: &str = "state";

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Door {
    First,
    Second,
    Gateway,
    /// In memory.
    Alone,
}

impl Door {
    pub(crate) const ALL: [Self; 4] = [Self::First, Self::Second, Self::Gateway, Self::Alone];
    /// Services on Redis.
    pub(crate) const SERVICES: [Self; 2] = [Self::First, Self::Second];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "service 1",
            Self::Second => "service 2",
            Self::Gateway => "gateway",
            Self::Alone => "in memory",
        }
    }

    /// Whether it is neither killed nor told to end, but for the first fifth of a soak: or memory that grows would not be
    /// seen.
    pub(crate) fn lives_on(self) -> bool {
        matches!(self, Self::Second | Self::Gateway)
    }
}

/// An instance, and how it is reached.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) instance: Instance,
    pub(crate) network: Proxy,
    /// Where it speaks Redis's protocol; the gateway does not.
    pub(crate) resp: String,
    /// Where it speaks gRPC, as Envoy does; the gateway does not.
    pub(crate) grpc: String,
    /// Where `/v1/check` is asked without that network: at the gateway, where it is administered.
    pub(crate) direct: SocketAddr,
}

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) cluster: RedisCluster,
    /// Between the gateway and the backend.
    pub(crate) upstream: Proxy,
    pub(crate) seen: Seen,
    members: [Member; 4],
    home: TemporaryDirectory,
}

impl Fleet {
    /// With its rules and arguments, or with that in the place of this.
    pub(crate) fn start(
        program: &Path,
        instead: Option<(String, String)>,
        backend: SocketAddr,
        seen: Seen,
    ) -> Self {
        let cluster = RedisCluster::start();
        let upstream = Proxy::to(&backend.to_string());
        let home = TemporaryDirectory::new();
        let rules = FLEET.replace("STORE", &cluster.url()).replace("UPSTREAM", &upstream.address());
        for (file, rules) in [("fleet.toml", rules.as_str()), ("alone.toml", ALONE)] {
            let rules = match &instead {
                Some((this, that)) => rules.replace(this, that),
                None => rules.to_owned(),
            };
            fs::write(home.path().join(file), rules).expect("a rule file");
        }
        let members = Door::ALL.map(|door| {
            // Somebody else may be faster to take a port.
            let start = |_| Member::start(door, program, home.path(), instead.as_ref());
            let is_taken = |started: &Result<Member, String>| {
                started.as_ref().is_err_and(|ended| ended.contains("Address already in use"))
            };
            let started = (0..5).map(start).find(|started| !is_taken(started));
            started.expect("ports that stay free").unwrap_or_else(|ended| panic!("{ended}"))
        });
        Self { cluster, upstream, seen, members, home }
    }

    pub(crate) fn member(&self, door: Door) -> &Member {
        &self.members[door as usize]
    }

    /// Where the one in memory saves its counts.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join(STATE)
    }

    /// The rule file of all that share Redis, or of the one in memory.
    pub(crate) fn rules(&self, door: Door) -> PathBuf {
        self.home.path().join(rule_file(door))
    }
}

impl Member {
    fn start(
        door: Door,
        program: &Path,
        home: &Path,
        instead: Option<&(String, String)>,
    ) -> Result<Self, String> {
        let local = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let [listen, other, grpc] = [(); 3].map(|()| local(free_port()));
        let place = |name: &str| home.join(name).display().to_string();
        let log = home.join(format!("{}.log", door.name()));
        let (command, by_door, health) = match door {
            Door::Gateway => ("proxy", vec!["--admin-listen".into(), other.to_string()], other),
            _ => {
                let doors = [
                    "--resp-listen".into(),
                    other.to_string(),
                    "--grpc-listen".into(),
                    grpc.to_string(),
                    // What nobody could settle is given back soon.
                    "--reservation-ttl=10s".into(),
                ];
                ("serve", doors.to_vec(), listen)
            }
        };
        let mut arguments: Vec<String> =
            vec![command.into(), "--listen".into(), listen.to_string()];
        arguments.extend(by_door);
        arguments.extend(["--config".into(), place(rule_file(door))]);
        let times = ["--drain-delay", "100ms", "--drain-timeout", "2s", "--threads", "1"];
        arguments.extend(times.map(str::to_owned));
        if door == Door::Alone {
            // What it logs must not be what finds the disk full.
            let state = ["--state-file", &place(STATE), "--state-every=1s", "--log-level", "error"];
            arguments.extend(state.map(str::to_owned));
        }
        if let Some((this, that)) = instead {
            arguments = arguments.iter().map(|argument| argument.replace(this, that)).collect();
        }
        let instance = Instance::start(program, arguments, health, log)?;
        let network = Proxy::to(&listen.to_string());
        Ok(Self {
            instance,
            network,
            resp: other.to_string(),
            grpc: grpc.to_string(),
            direct: health,
        })
    }
}

fn rule_file(door: Door) -> &'static str {
    if door == Door::Alone { "alone.toml" } else { "fleet.toml" }
}
