//! Nodes that share a key, the messages between them and a Redis, and all that can happen to them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use dashpot::{Consistency, Cost, Policy, Timestamp};
use fastrand::Rng;
use redis::{Cmd, Value};

use super::oracle::Oracle;
use super::server::Server;
use crate::failure::Failure;
use crate::lease::exchange::{lease_call, read_lease};
use crate::lease::purse::Aside;
use crate::lease::slot::{Nanos, Request, Slot, Taken, Ways};
use crate::lease::upkeep::Need;
use crate::question::{Question, Questions};
use crate::recall::{Answer, Came};
use crate::script;

const MILLI: u64 = 1_000_000;

/// When it begins, in nanoseconds since the epoch.
const BEGIN: u64 = 1_700_000_000_000_000_000;

/// How long a node waits for an answer.
const DEADLINE: u64 = 20 * MILLI;

/// What may go wrong, each in so many of a thousand times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) lost: u32,
    pub(super) crashes: u32,
    /// How long messages take at most, in milliseconds.
    pub(super) slow: u64,
    /// By how many in ten thousand clocks differ in pace.
    pub(super) drift: u64,
    pub(super) resets: u32,
}

/// What is to be played through.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) policy: Policy,
    pub(super) nodes: usize,
    pub(super) lease: Duration,
    pub(super) lasts: Duration,
    pub(super) trouble: Trouble,
    /// How often all of them ask, of a second.
    pub(super) demand: u64,
}

#[derive(Debug)]
enum Event {
    Check(usize),
    AtRedis { node: usize, life: u64, request: Request, call: Cmd },
    Reply { node: usize, life: u64, request: Request, value: Value },
    GiveUp { node: usize, life: u64, number: u64 },
    Settle { node: usize, life: u64, aside: Aside, cost: u64, spend: bool },
    Upkeep(usize),
    Exact { cost: u64 },
    Mood(usize),
}

struct Node {
    slot: Slot,
    /// Which of its lives it is: a node that crashed begins anew.
    life: u64,
    offset: u64,
    drift: i64,
    /// The call that it waits for an answer to.
    outstanding: Option<u64>,
    waiting: Vec<u64>,
    /// Of a thousand: how much it asks for, compared to others.
    mood: u64,
}

pub(super) struct World {
    scene: Scene,
    rng: Rng,
    server: Server,
    nodes: Vec<Node>,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    queue: std::collections::HashMap<u64, Event>,
    sent: u64,
    now: u64,
    oracle: Oracle,
    name: Vec<u8>,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) calls: u64,
    pub(super) by_node: Vec<u64>,
    pub(super) wrong: Option<String>,
}

impl World {
    pub(super) fn new(seed: u64, scene: Scene, change: impl Fn(&str) -> String) -> Self {
        let checks = [dashpot::Check::new(&scene.policy, "hot")];
        let name = Questions::new("dashpot", &checks).unwrap().all[0].key.clone();
        let mut rng = Rng::with_seed(seed);
        let drift = i64::try_from(scene.trouble.drift).unwrap();
        let node = |rng: &mut Rng| Node {
            slot: Slot::new(scene.policy.clone(), b"hot", name.clone(), rng.u64(..), 1),
            life: 0,
            offset: rng.u64(1..1_000_000_000_000),
            drift: rng.i64(-drift..=drift),
            outstanding: None,
            waiting: Vec::new(),
            mood: rng.u64(1..=1000),
        };
        let nodes: Vec<Node> = (0..scene.nodes).map(|_| node(&mut rng)).collect();
        let mut world = Self {
            oracle: Oracle::new(&scene.policy),
            by_node: vec![0; scene.nodes],
            server: Server::new(change),
            nodes,
            scene,
            rng,
            events: BinaryHeap::new(),
            queue: std::collections::HashMap::new(),
            sent: 0,
            now: BEGIN,
            name,
            admitted: 0,
            refused: 0,
            calls: 0,
            wrong: None,
        };
        // So that windows begin anywhere in it.
        world.now += world.rng.u64(0..4_000 * MILLI);
        for node in 0..world.scene.nodes {
            world.check_again(node);
            let (upkeep, mood) = (world.rng.u64(0..50 * MILLI), world.rng.u64(0..500 * MILLI));
            world.after(upkeep, Event::Upkeep(node));
            world.after(mood, Event::Mood(node));
        }
        world
    }

    /// Plays it through, and lets everything come to rest.
    pub(super) fn play(&mut self) {
        let end = self.now + u64::try_from(self.scene.lasts.as_nanos()).unwrap();
        self.run(end);
        self.scene.demand = 0;
        let rest = 3 * u64::try_from(self.scene.lease.as_nanos()).unwrap() + 2_000 * MILLI;
        self.run(end + rest);
    }

    fn run(&mut self, end: u64) {
        while let Some(&Reverse((at, number))) = self.events.peek()
            && at <= end
            && self.wrong.is_none()
        {
            self.events.pop();
            self.now = at;
            if let Some(event) = self.queue.remove(&number) {
                self.happen(event);
            }
        }
        self.now = end;
    }

    fn after(&mut self, wait: u64, event: Event) {
        self.sent += 1;
        self.events.push(Reverse((self.now + wait, self.sent)));
        self.queue.insert(self.sent, event);
    }

    /// What Redis's clock shows, in microseconds.
    pub(super) fn redis_now(&self) -> u64 {
        self.now / 1000
    }

    fn local(&self, node: usize) -> Nanos {
        let node = &self.nodes[node];
        let since = i64::try_from(self.now - BEGIN).unwrap();
        let local = since + since / 10_000 * node.drift;
        node.offset + u64::try_from(local).unwrap()
    }

    fn ways(&self) -> Ways {
        Ways {
            lease: self.scene.lease,
            interval: Duration::from_millis(100),
            denial_memory: Duration::from_millis(100),
        }
    }

    fn chance(&mut self, of_a_thousand: u32) -> bool {
        self.rng.u32(0..1000) < of_a_thousand
    }

    fn check_again(&mut self, node: usize) {
        let all = self.scene.demand;
        if all == 0 {
            return;
        }
        let each = (all * self.nodes[node].mood / 1000 / self.scene.nodes as u64).max(1);
        let wait = self.rng.u64(0..2_000_000_000 / each);
        self.after(wait, Event::Check(node));
    }

    fn cost(&mut self) -> u64 {
        if self.rng.u8(0..10) == 0 { self.rng.u64(1..=self.scene.policy.limit().min(7)) } else { 1 }
    }

    fn admit(&mut self, node: Option<usize>, cost: u64) {
        self.admitted += cost;
        if let Some(node) = node {
            self.by_node[node] += cost;
        }
        if let Some(wrong) = self.oracle.admit(self.now, cost) {
            self.wrong = Some(format!("after {} ns: {wrong}", self.now - BEGIN));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Check(node) => {
                self.check(node);
                self.check_again(node);
            }
            Event::AtRedis { node, life, request, call } => {
                let value = self.server.run(self.redis_now(), &call);
                let (slow, lost) = (self.delay(), self.chance(self.scene.trouble.lost));
                if !lost {
                    self.after(slow, Event::Reply { node, life, request, value });
                }
            }
            Event::Reply { node, life, request, value } => self.reply(node, life, &request, &value),
            Event::GiveUp { node, life, number } => {
                let local = self.local(node);
                let own = &mut self.nodes[node];
                if own.life == life && own.outstanding == Some(number) {
                    own.outstanding = None;
                    own.waiting.clear();
                    own.slot.fail(local, Failure::Late(Duration::from_nanos(DEADLINE)));
                }
            }
            Event::Settle { node, life, aside, cost, spend } => {
                let local = self.local(node);
                if self.nodes[node].life == life {
                    if spend {
                        let is_low = self.nodes[node].slot.spend_aside(local, &aside);
                        self.admit(Some(node), cost);
                        self.ask_if(is_low, node);
                    } else {
                        self.nodes[node].slot.put_back(&aside);
                    }
                }
            }
            Event::Upkeep(node) => {
                self.upkeep(node);
                self.after(50 * MILLI, Event::Upkeep(node));
            }
            Event::Exact { cost } => self.exact(cost),
            Event::Mood(node) => {
                let crashes = self.chance(self.scene.trouble.crashes);
                if crashes {
                    self.begin_anew(node);
                }
                if self.chance(self.scene.trouble.resets) {
                    self.server.reset(&self.name);
                    self.oracle = Oracle::new(&self.scene.policy);
                }
                let mood = [1, 30, 1000][self.rng.usize(0..3)];
                self.nodes[node].mood = mood;
                let wait = self.rng.u64(0..1_000 * MILLI);
                self.after(wait, Event::Mood(node));
            }
        }
    }

    fn begin_anew(&mut self, node: usize) {
        let holder = self.rng.u64(..);
        let local = self.local(node);
        let slot = Slot::new(self.scene.policy.clone(), b"hot", self.name.clone(), holder, local);
        let own = &mut self.nodes[node];
        own.slot = slot;
        own.life += 1;
        own.outstanding = None;
        own.waiting.clear();
    }

    fn check(&mut self, node: usize) {
        let (cost, local) = (self.cost(), self.local(node));
        match self.rng.u8(0..20) {
            0 => {
                let wait = self.delay();
                self.after(wait, Event::Exact { cost });
            }
            1..=4 => {
                if let Some(aside) = self.nodes[node].slot.set_aside(local, local + DEADLINE, cost)
                {
                    let (wait, spend) = (self.rng.u64(0..DEADLINE), self.rng.bool());
                    let life = self.nodes[node].life;
                    self.after(wait, Event::Settle { node, life, aside, cost, spend });
                }
            }
            _ => self.spend(node, cost),
        }
    }

    fn spend(&mut self, node: usize, cost: u64) {
        let (local, ways) = (self.local(node), self.ways());
        match self.nodes[node].slot.spend(local, cost, &ways) {
            Taken::Spent { is_low, .. } => {
                self.admit(Some(node), cost);
                self.ask_if(is_low, node);
            }
            Taken::Refused => self.refused += cost,
            Taken::Dry => {
                self.nodes[node].waiting.push(cost);
                if self.nodes[node].slot.trouble(local).is_none() && self.nodes[node].slot.claim() {
                    self.ask(node, cost);
                }
            }
        }
    }

    fn ask_if(&mut self, is_low: bool, node: usize) {
        if is_low && self.nodes[node].slot.claim() {
            self.ask(node, 0);
        }
    }

    fn ask(&mut self, node: usize, need: u64) {
        let instances = self.scene.nodes as u64;
        let request = self.nodes[node].slot.request(self.local(node), need, instances);
        self.send(node, request);
    }

    fn send(&mut self, node: usize, request: Request) {
        self.calls += 1;
        let (instances, lease) = (self.scene.nodes as u64, self.scene.lease);
        let around = Timestamp::from_nanos(self.now);
        let call = lease_call(&self.nodes[node].slot, &request, (instances, lease), around);
        let (life, number) = (self.nodes[node].life, request.number);
        self.nodes[node].outstanding = Some(number);
        let (slow, lost) = (self.delay(), self.chance(self.scene.trouble.lost));
        if !lost {
            self.after(slow, Event::AtRedis { node, life, request, call });
        }
        self.after(DEADLINE, Event::GiveUp { node, life, number });
    }

    fn delay(&mut self) -> u64 {
        let usual = self.rng.u64(50_000..500_000);
        if self.rng.u8(0..8) == 0 {
            self.rng.u64(0..=self.scene.trouble.slow) * MILLI
        } else {
            usual
        }
    }

    fn reply(&mut self, node: usize, life: u64, request: &Request, value: &Value) {
        let (local, lease) = (self.local(node), self.scene.lease);
        let own = &mut self.nodes[node];
        if own.life != life || own.outstanding != Some(request.number) {
            return;
        }
        own.outstanding = None;
        let reply = read_lease(&own.slot, lease, value).unwrap().unwrap();
        own.slot.hear(request, local, reply);
        for cost in std::mem::take(&mut own.waiting) {
            self.spend(node, cost);
        }
    }

    fn upkeep(&mut self, node: usize) {
        let local = self.local(node);
        let half = u64::try_from(self.scene.lease.as_nanos() / 2).unwrap();
        match self.nodes[node].slot.needs(local, half) {
            Need::Nothing => {}
            Need::Renewal => self.ask_if(true, node),
            Need::Farewell => {
                if self.nodes[node].slot.claim() {
                    let request = self.nodes[node].slot.leave(local);
                    if let Some(request) = request {
                        self.send(node, request);
                    }
                    self.begin_anew(node);
                }
            }
        }
    }

    /// Somebody asks Redis itself.
    fn exact(&mut self, cost: u64) {
        let policy = self.scene.policy.clone();
        let question = question(&policy, &self.name, cost);
        let mut call = script::DECIDE.call(std::iter::once(self.name.as_slice()));
        call.arg(1);
        question.ask((cost, 0), Timestamp::from_nanos(self.now), 0, &mut call);
        let value = self.server.run(self.redis_now(), &call);
        let answer = Answer::read(&value, &[&question]).unwrap();
        let now = Timestamp::from_nanos(self.redis_now() * 1000);
        assert_eq!(answer.now, now);
        // Both sides of the protocol understand what is kept alike.
        let allowed = answer.states[0].state(&question, now).allows(now, Cost::new(cost));
        assert_eq!(
            answer.came == Came::Taken,
            allowed,
            "{:?}",
            self.server.get(now.as_nanos() / 1000, &self.name).map(|s| String::from_utf8(s))
        );
        if allowed {
            self.admit(None, cost);
        }
    }

    /// How many units could be taken now, and how many were counted in this window: by Redis, and in truth.
    pub(super) fn rest(&self) -> (u64, u64) {
        let question = question(&self.scene.policy, &self.name, 0);
        let mut call = script::DECIDE.call(std::iter::once(self.name.as_slice()));
        call.arg(0);
        question.ask((0, 0), Timestamp::from_nanos(self.now), 0, &mut call);
        let value = self.server.run(self.redis_now(), &call);
        let answer = Answer::read(&value, &[&question]).unwrap();
        let status = answer.states[0].answer(&question, &self.scene.policy, answer.now, true);
        (status.remaining(), self.oracle.counted(self.now))
    }
}

fn question<'p>(policy: &'p Policy, name: &[u8], cost: u64) -> Question<'p> {
    assert_eq!(policy.consistency(), Consistency::Leased);
    Question {
        policy,
        others: smallvec::SmallVec::new(),
        key: name.to_vec(),
        is_global: false,
        cost,
        parts: smallvec::SmallVec::new(),
        permit: None,
    }
}
