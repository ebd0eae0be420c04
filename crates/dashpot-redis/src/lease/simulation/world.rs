//! Nodes that share a key, the messages between them and a Redis, and all that can happen to them.

mod direct;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use dashpot::{Consistency, Timestamp};
use fastrand::Rng;
use redis::{Cmd, Value};

use super::oracle::Oracle;
use super::scene::Scene;
use super::server::Server;
use crate::failure::Failure;
use crate::lease::exchange::{lease_call, read_lease, read_look};
use crate::lease::purse::Aside;
use crate::lease::slot::{Nanos, Request, Slot, Taken, Ways};
use crate::lease::upkeep::Need;
use crate::question::{Deed, Questions, Settling};
use crate::recall::Answer;
use crate::script;
use crate::topology::Spot;

const MILLI: u64 = 1_000_000;

/// When it begins, in nanoseconds since the epoch.
const BEGIN: u64 = 1_700_000_000_000_000_000;

/// How long a node waits for an answer.
const DEADLINE: u64 = 20 * MILLI;

/// How often is told what was counted.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
enum Event {
    Check(usize),
    /// The first of these calls comes to Redis.
    AtRedis {
        node: usize,
        life: u64,
        request: Request,
        calls: Vec<Cmd>,
    },
    /// The answer to a call; others follow it.
    Reply {
        node: usize,
        life: u64,
        request: Request,
        value: Value,
        calls: Vec<Cmd>,
    },
    GiveUp {
        node: usize,
        life: u64,
        number: u64,
    },
    Settle {
        node: usize,
        life: u64,
        aside: Aside,
        cost: u64,
        spend: bool,
    },
    /// It turns out that what was spent then was not needed.
    TakeBack {
        node: usize,
        life: u64,
        cost: u64,
        spent: u64,
    },
    Upkeep(usize),
    Exact {
        cost: u64,
    },
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
    pub(super) calls: u64,
    is_eager: bool,
    /// What each node may grant too much.
    spare: u64,
    pub(super) by_node: Vec<u64>,
    pub(super) wrong: Option<String>,
}

impl World {
    pub(super) fn new(seed: u64, scene: Scene, change: impl Fn(&str) -> String) -> Self {
        let checks = [dashpot::Check::new(&scene.policy, "hot")];
        let name = Questions::new("dashpot", &checks).unwrap().all[0].key.clone();
        let place = (name.clone(), Spot::default());
        let mut rng = Rng::with_seed(seed);
        let drift = i64::try_from(scene.trouble.drift).unwrap();
        let node = |rng: &mut Rng| Node {
            slot: Slot::new(scene.policy.clone(), b"hot", place.clone(), rng.u64(..), 1),
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
            calls: 0,
            is_eager: false,
            spare: 0,
            wrong: None,
        };
        if !world.is_leased() {
            world.spare = world.nodes[0].slot.quantum(&world.ways());
            world.oracle.spare = world.spare * world.scene.nodes as u64;
        }
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
        self.idle_after(self.scene.lasts);
        let quota = self.scene.policy.quota();
        let window = nanos(quota.window().unwrap().length());
        let refill = window * self.scene.policy.limit() / quota.count().unwrap();
        self.run(self.now + 3 * nanos(self.scene.lease) + 2_000 * MILLI + refill.max(2 * window));
    }

    /// Plays for so long, and until those who were busy have given back what they had.
    pub(super) fn idle_after(&mut self, lasts: Duration) {
        self.run(self.now + nanos(lasts));
        self.scene.demand = 0;
        self.run(self.now + 1_000 * MILLI);
    }

    /// Everybody asks as often as can be, all the time.
    pub(super) fn eager(&mut self) {
        self.is_eager = true;
        self.nodes.iter_mut().for_each(|node| node.mood = 1000);
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
            interval: INTERVAL,
            denial_memory: Duration::from_millis(100),
        }
    }

    fn chance(&mut self, of_a_thousand: u32) -> bool {
        self.rng.u32(0..1000) < of_a_thousand
    }

    fn check_again(&mut self, node: usize) {
        let each =
            (self.scene.demand * self.nodes[node].mood / 1000 / self.scene.nodes as u64).max(1);
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
        // By Redis's clock, which tells microseconds.
        if let Some(wrong) = self.oracle.admit(self.redis_now() * 1000, cost) {
            self.wrong = Some(format!("after {} ns: {wrong}", self.now - BEGIN));
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Check(node) => {
                if self.scene.demand > 0 {
                    self.check(node);
                    self.check_again(node);
                }
            }
            Event::AtRedis { node, life, request, mut calls } => {
                let value = self.server.run(self.redis_now(), &calls.remove(0));
                self.message(Event::Reply { node, life, request, value, calls });
            }
            Event::Reply { node, life, request, value, calls } => {
                let own = &self.nodes[node];
                if own.life != life || own.outstanding != Some(request.number) {
                    return;
                }
                if calls.is_empty() {
                    self.reply(node, &request, &value);
                } else {
                    self.nodes[node].slot.told(request.spent);
                    self.message(Event::AtRedis { node, life, request, calls });
                }
            }
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
                    if spend && !self.nodes[node].slot.has_ended(local, &aside) {
                        let is_low = self.nodes[node].slot.spend_aside(local, &aside);
                        self.admit(Some(node), cost);
                        self.ask_if(is_low, node);
                    } else {
                        self.nodes[node].slot.put_back(&aside);
                    }
                }
            }
            Event::TakeBack { node, life, cost, spent } => {
                let (local, charged_at) = (self.local(node), Timestamp::from_nanos(spent));
                let own = &self.nodes[node];
                if own.life == life && own.slot.claim() {
                    let back = own.slot.take_back(local, cost, charged_at);
                    own.slot.let_go();
                    self.oracle.take_back(spent, self.redis_now() * 1000, back);
                    self.admitted -= back;
                }
            }
            Event::Upkeep(node) => {
                self.upkeep(node);
                self.after(50 * MILLI, Event::Upkeep(node));
            }
            Event::Exact { cost } => self.exact(cost),
            Event::Mood(node) => {
                if self.chance(self.scene.trouble.crashes) {
                    self.oracle.spare += self.spare;
                    self.begin_anew(node);
                }
                let mood = [1, 30, 1000][self.rng.usize(0..3)];
                self.nodes[node].mood = if self.is_eager { 1000 } else { mood };
                let wait = self.rng.u64(0..1_000 * MILLI);
                self.after(wait, Event::Mood(node));
            }
        }
    }

    fn begin_anew(&mut self, node: usize) {
        let holder = self.rng.u64(..);
        let (local, place) = (self.local(node), (self.name.clone(), Spot::default()));
        let slot = Slot::new(self.scene.policy.clone(), b"hot", place, holder, local);
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
                    // It may take longer than it should.
                    let (wait, spend) = (self.rng.u64(0..3 * DEADLINE), self.rng.bool());
                    let life = self.nodes[node].life;
                    self.after(wait, Event::Settle { node, life, aside, cost, spend });
                }
            }
            _ => self.spend(node, cost),
        }
    }

    fn spend(&mut self, node: usize, cost: u64) {
        let (local, ways) = (self.local(node), self.ways());
        let slot = &self.nodes[node].slot;
        match slot.spend(&slot.terms(), cost, || local, &ways).1 {
            Taken::Spent { is_low, .. } => {
                self.admit(Some(node), cost);
                self.ask_if(is_low, node);
                if self.rng.u8(0..10) == 0 {
                    let (life, spent) = (self.nodes[node].life, self.redis_now() * 1000);
                    let wait = self.rng.u64(0..300 * MILLI);
                    self.after(wait, Event::TakeBack { node, life, cost, spent });
                }
            }
            Taken::Refused => {}
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
        let around = Timestamp::from_nanos(self.now);
        let slot = &self.nodes[node].slot;
        let calls = if self.is_leased() {
            vec![lease_call(slot, &request, self.scene.lease, around)]
        } else {
            let (policy, units) = (&slot.policy, request.spent);
            let mut charge = script::SETTLE.call(std::iter::once(slot.name.as_slice()));
            let what = Settling { policy, deed: Deed::Charge, charged_at: around, units };
            what.tell(None, around, &mut charge);
            let look = self.question_about(0).1;
            if units > 0 { vec![charge, look] } else { vec![look] }
        };
        let (life, number) = (self.nodes[node].life, request.number);
        self.nodes[node].outstanding = Some(number);
        self.message(Event::AtRedis { node, life, request, calls });
        self.after(DEADLINE, Event::GiveUp { node, life, number });
    }

    /// Something comes in a while, or never.
    fn message(&mut self, event: Event) {
        let (slow, lost) = (self.delay(), self.chance(self.scene.trouble.lost));
        if !lost {
            self.after(slow, event);
        }
    }

    fn delay(&mut self) -> u64 {
        let usual = self.rng.u64(50_000..500_000);
        if self.rng.u8(0..8) == 0 {
            self.rng.u64(0..=self.scene.trouble.slow) * MILLI
        } else {
            usual
        }
    }

    fn reply(&mut self, node: usize, request: &Request, value: &Value) {
        let (local, lease, ways) = (self.local(node), self.scene.lease, self.ways());
        let is_leased = self.is_leased();
        let own = &mut self.nodes[node];
        own.outstanding = None;
        let reply = if is_leased {
            read_lease(&own.slot, request, lease, value).unwrap().unwrap()
        } else {
            let answer = Answer::read(value, &[&own.slot.question(0)]).unwrap();
            read_look(&own.slot, &ways, answer).unwrap()
        };
        let late = Request { asked: local, ..request.clone() };
        let request = if self.scene.counts_from_the_answer { &late } else { request };
        own.slot.hear(request, local, reply);
        for cost in std::mem::take(&mut own.waiting) {
            self.spend(node, cost);
        }
    }

    fn upkeep(&mut self, node: usize) {
        let local = self.local(node);
        let often = if self.is_leased() { self.scene.lease / 2 } else { INTERVAL };
        match self.nodes[node].slot.needs(local, nanos(often)) {
            Need::Nothing => {}
            Need::Renewal => {
                let is_well = self.nodes[node].slot.trouble(local).is_none();
                self.ask_if(is_well, node);
            }
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

    fn is_leased(&self) -> bool {
        self.scene.policy.consistency() == Consistency::Leased
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap()
}
