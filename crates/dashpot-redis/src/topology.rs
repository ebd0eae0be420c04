//! Who is asked about which key.

use std::sync::Arc;

use redis::{Cmd, Value};
use tokio::time::{Instant, sleep, timeout_at};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::key::{placed_by, slot};
use crate::link::{Condition, Link, PROBE_EVERY, Place};
use crate::settings::Settings;
use crate::target::Target;

pub(crate) enum Topology {
    /// One server, or several that know nothing of each other.
    Servers(Vec<Server>),
    Cluster(Arc<Cluster>),
}

pub(crate) struct Server {
    link: Arc<Link>,
    /// What sets it apart from the others.
    seed: u64,
}

/// Where keys are that can be asked about in one call: a server's number, or a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Spot(u16);

impl Topology {
    pub(crate) fn start(target: Target, settings: &Arc<Settings>) -> Self {
        let server = |place: Place| {
            let link = Link::start(place, settings.clone());
            let seed = xxh3_64_with_seed(link.address().as_bytes(), 0);
            Server { link, seed }
        };
        match target {
            Target::Servers(servers) => {
                Self::Servers(servers.into_iter().map(|info| server(Place::Known(info))).collect())
            }
            Target::Sentinel(watched) => Self::Servers(vec![server(Place::Watched(watched))]),
            Target::Cluster(seeds) => Self::Cluster(Cluster::start(seeds, settings.clone())),
        }
    }

    /// Where a key is. Among several servers each is drawn a lot for the key, and the highest has it: if
    /// the list changes, only what must move does.
    pub(crate) fn spot(&self, key: &[u8]) -> Spot {
        match self {
            Self::Servers(servers) => {
                if servers.len() <= 1 {
                    return Spot(0);
                }
                let tag = placed_by(key);
                let lots = servers.iter().map(|server| xxh3_64_with_seed(tag, server.seed));
                let highest = (0_u16..).zip(lots).max_by_key(|&(_, lot)| lot);
                Spot(highest.map_or(0, |(number, _)| number))
            }
            Self::Cluster(_) => Spot(slot(key)),
        }
    }

    /// Sends a command about keys in this spot.
    pub(crate) async fn call(
        &self,
        spot: Spot,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        match self {
            Self::Servers(servers) => match servers.get(usize::from(spot.0)) {
                Some(server) => server.link.call(command, deadline).await,
                None => Err(Failure::Down("there is no such server".to_owned())),
            },
            Self::Cluster(cluster) => cluster.call(spot.0, command, deadline).await,
        }
    }

    /// All servers, or all nodes that have slots.
    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        match self {
            Self::Servers(servers) => servers.iter().map(|server| server.link.clone()).collect(),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    /// Where instances announce themselves: with each server, or once in a cluster.
    pub(crate) fn spots_for(&self, key: &[u8]) -> Vec<Spot> {
        match self {
            Self::Servers(servers) => {
                (0_u16..).zip(servers).map(|(number, _)| Spot(number)).collect()
            }
            Self::Cluster(_) => vec![Spot(slot(key))],
        }
    }

    /// Waits until all of it answers.
    pub(crate) async fn ready(&self, deadline: Instant) -> Result<(), Failure> {
        let condition = || match self {
            Self::Servers(servers) => {
                let mut conditions =
                    servers.iter().map(|one| one.link.condition().borrow().clone());
                conditions.find(|condition| *condition != Condition::Up).unwrap_or(Condition::Up)
            }
            Self::Cluster(cluster) => cluster.condition(),
        };
        let up = async {
            while condition() != Condition::Up {
                sleep(PROBE_EVERY / 50).await;
            }
        };
        timeout_at(deadline, up).await.map_err(|_| match condition() {
            Condition::Down(reason) => Failure::Down(reason),
            Condition::Up | Condition::Starting => {
                Failure::Down("it does not answer in time".to_owned())
            }
        })
    }
}
