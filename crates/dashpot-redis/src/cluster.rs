//! A cluster: which node has which slot, and following it when that changes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use redis::{Cmd, ConnectionInfo, RedisError, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::failure::{Failure, Kind};
use crate::key::SLOTS;
use crate::link::{Condition, Link, PROBE_EVERY, Place};
use crate::settings::Settings;
use crate::target::{Seeds, at};

/// How often the cluster is asked for its nodes when nothing is wrong.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// How often a command is sent on before that is given up.
const REDIRECTS: usize = 8;

/// How long to wait while the keys of one call are on two nodes.
const BETWEEN_NODES: Duration = Duration::from_millis(1);

pub(crate) struct Cluster {
    seeds: Seeds,
    settings: Arc<Settings>,
    /// Links by where they lead: to nodes, and to those that were named in the URL.
    links: Mutex<HashMap<(String, u16), Arc<Link>>>,
    map: ArcSwap<Map>,
    /// Told when the map may be wrong.
    doubted: Arc<Notify>,
    /// Whether the nodes were asked for at least once.
    asked: watch::Sender<bool>,
}

/// Which node has which slot.
#[derive(Default)]
struct Map {
    nodes: Vec<Arc<Link>>,
    /// An index of `nodes` for each slot, or beyond if nobody has it.
    slots: Vec<u16>,
}

impl Cluster {
    pub(crate) fn start(seeds: Seeds, settings: Arc<Settings>) -> Arc<Self> {
        let cluster = Arc::new(Self {
            seeds,
            settings,
            links: Mutex::default(),
            map: ArcSwap::default(),
            doubted: Arc::default(),
            asked: watch::Sender::new(false),
        });
        tokio::spawn(keep_up(Arc::downgrade(&cluster), cluster.doubted.clone()));
        cluster
    }

    /// The nodes that have slots.
    pub(crate) fn nodes(&self) -> Vec<Arc<Link>> {
        self.map.load().nodes.clone()
    }

    fn owner(&self, slot: u16) -> Option<Arc<Link>> {
        let map = self.map.load();
        let index = *map.slots.get(usize::from(slot))?;
        map.nodes.get(usize::from(index)).cloned()
    }

    /// Sends a command about keys in this slot.
    pub(crate) async fn call(
        &self,
        slot: u16,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        // Until it is known who has what, that is waited for.
        if !*self.asked.borrow() {
            let _ = timeout_at(deadline, self.asked.subscribe().wait_for(|asked| *asked)).await;
        }
        let mut sent_to: Option<Arc<Link>> = None;
        let mut redirects = 0;
        while redirects < REDIRECTS {
            let link = match sent_to.take().or_else(|| self.owner(slot)) {
                Some(link) => link,
                None => {
                    self.doubted.notify_one();
                    return Err(Failure::Down(format!("no node has slot {slot}")));
                }
            };
            let failure = match link.call(command, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Failure::Refused(error) = &failure else {
                self.doubted.notify_one();
                return Err(failure);
            };
            match (Kind::of(error), error.redirect_node()) {
                (Kind::Moved, Some((address, _))) => {
                    redirects += 1;
                    self.doubted.notify_one();
                    sent_to = self.link_to(address, &link);
                }
                (Kind::Ask, Some((address, _))) => {
                    let Some(next) = self.link_to(address, &link) else { return Err(failure) };
                    match next.call_asking(command, deadline).await {
                        Err(Failure::Refused(error)) if is_on_its_way(&error, deadline) => {
                            sleep(BETWEEN_NODES).await;
                        }
                        // By now it stays where it was.
                        Err(Failure::Refused(error)) if Kind::of(&error) == Kind::Moved => {
                            redirects += 1;
                        }
                        answer => return answer,
                    }
                }
                (Kind::TryAgain, _) if is_on_its_way(error, deadline) => {
                    sleep(BETWEEN_NODES).await;
                }
                _ => {
                    self.doubted.notify_one();
                    return Err(failure);
                }
            }
        }
        Err(Failure::Odd("the nodes of the cluster send a command in circles"))
    }

    /// The link to an address as a node writes it. Where it leaves the host out, it means its own.
    fn link_to(&self, address: &str, from: &Link) -> Option<Arc<Link>> {
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let own = from.address();
        let host = match host {
            "" | "?" => own.rsplit_once(':').map_or("", |(host, _)| host),
            host => host,
        };
        Some(self.link(host, port))
    }

    fn link(&self, host: &str, port: u16) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links.entry((host.to_owned(), port)).or_insert_with(|| {
            Link::start(Place::Known(at(&self.seeds.template, host, port)), self.settings.clone())
        });
        link.clone()
    }

    /// Asks for the nodes, and believes the first that answers.
    pub(crate) async fn refresh(&self) {
        let mut links = self.nodes();
        for seed in &self.seeds.nodes {
            if let Some((host, port)) = place(seed) {
                let link = self.link(&host, port);
                if !links.iter().any(|known| Arc::ptr_eq(known, &link)) {
                    links.push(link);
                }
            }
        }
        // Those that are up first: the others would be waited for.
        links.sort_by_key(|link| !link.is_up());
        let mut question = redis::cmd("CLUSTER");
        question.arg("SLOTS");
        for link in links {
            let deadline = Instant::now() + self.settings.connect_timeout;
            if let Ok(answer) = link.call(&question, deadline).await
                && let Some(ranges) = parse(&answer)
            {
                return self.adopt(ranges, &link);
            }
        }
    }

    fn adopt(&self, ranges: Vec<Range>, from: &Link) {
        let mut map = Map { nodes: Vec::new(), slots: vec![u16::MAX; SLOTS.into()] };
        let own = from.address();
        for Range { first, last, host, port } in ranges {
            let host = match host.as_str() {
                "" | "?" => own.rsplit_once(':').map_or("", |(host, _)| host),
                host => host,
            };
            let link = self.link(host, port);
            let known = map.nodes.iter().position(|node| Arc::ptr_eq(node, &link));
            let index = known.unwrap_or_else(|| {
                map.nodes.push(link);
                map.nodes.len() - 1
            });
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            for slot in map.slots.iter_mut().take(usize::from(last) + 1).skip(first.into()) {
                *slot = index;
            }
        }
        // Links to those who have left end here, but for the ones in the URL.
        let is_seed = |address: &(String, u16)| {
            self.seeds.nodes.iter().any(|seed| place(seed).as_ref() == Some(address))
        };
        let mut links = self.links.lock();
        links.retain(|address, link| {
            is_seed(address) || map.nodes.iter().any(|node| Arc::ptr_eq(node, link))
        });
        drop(links);
        self.map.store(Arc::new(map));
    }

    fn has_trouble(&self) -> bool {
        let map = self.map.load();
        map.nodes.is_empty() || map.nodes.iter().any(|node| !node.is_up())
    }

    /// How the whole is: up once the nodes are known and answer.
    pub(crate) fn condition(&self) -> Condition {
        let map = self.map.load();
        let down = map.nodes.iter().find(|node| !node.is_up());
        match down {
            None if map.nodes.is_empty() => {
                let links = self.links.lock();
                let conditions = links.values().map(|link| link.condition().borrow().clone());
                let down = conditions.filter(|condition| matches!(condition, Condition::Down(_)));
                down.last().unwrap_or(Condition::Starting)
            }
            None => Condition::Up,
            Some(node) => node.condition().borrow().clone(),
        }
    }
}

/// Whether the keys of a call are on two nodes, and there is time to wait until they are on one: however
/// often that takes.
fn is_on_its_way(error: &RedisError, deadline: Instant) -> bool {
    Kind::of(error) == Kind::TryAgain && Instant::now() + BETWEEN_NODES < deadline
}

fn place(info: &ConnectionInfo) -> Option<(String, u16)> {
    match info.addr() {
        redis::ConnectionAddr::Tcp(host, port)
        | redis::ConnectionAddr::TcpTls { host, port, .. } => Some((host.clone(), *port)),
        _ => None,
    }
}

/// Some slots, and the node that has them.
struct Range {
    first: u16,
    last: u16,
    host: String,
    port: u16,
}

/// What `CLUSTER SLOTS` answers; `None` if it makes no sense, or says nothing.
fn parse(answer: &Value) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    let range = |range: &Value| {
        let Value::Array(range) = range else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = range.as_slice()
        else {
            return None;
        };
        let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
        let host = match host {
            Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
            _ => String::new(),
        };
        Some(Range {
            first: u16::try_from(*first).ok()?,
            last: u16::try_from(*last).ok()?,
            host,
            port: u16::try_from(*port).ok()?,
        })
    };
    let ranges: Vec<_> = ranges.iter().map(range).collect::<Option<_>>()?;
    if ranges.is_empty() { None } else { Some(ranges) }
}

/// Keeps the map true, for as long as there is a cluster.
async fn keep_up(cluster: std::sync::Weak<Cluster>, doubted: Arc<Notify>) {
    loop {
        let started = Instant::now();
        let trouble = match cluster.upgrade() {
            None => return,
            Some(cluster) => {
                cluster.refresh().await;
                cluster.asked.send_replace(true);
                cluster.has_trouble()
            }
        };
        if trouble {
            tokio::time::sleep_until(started + PROBE_EVERY).await;
        } else {
            tokio::select! {
                // Many may doubt it at once.
                () = doubted.notified() => sleep(PROBE_EVERY / 10).await,
                () = sleep(REFRESH_EVERY) => {}
            }
        }
    }
}
