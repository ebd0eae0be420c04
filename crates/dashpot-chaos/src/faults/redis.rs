//! Redis is killed, hangs, is slow, hangs up, forgets its scripts.

use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::{Reply, slot};

use super::{asks_redis, await_well, prober, tell};
use crate::fleet::Door;
use crate::recovery::{BACK, FAILOVER};
use crate::soak::{Besides, Soak};
use crate::troubles::Trouble;

const ON_REDIS: [Door; 3] = [Door::First, Door::Second, Door::Gateway];
/// The first slot of each primary's.
const SLOTS: [u16; 3] = [0, 5461, 10_923];

pub(super) fn break_something(soak: &Soak, random: &mut fastrand::Rng) {
    let slot = SLOTS[random.usize(..SLOTS.len())];
    match random.u8(..9) {
        0 | 1 => kill_primary(soak, random, slot),
        2 => hang_primary(soak, random, slot, true),
        3 => hang_primary(soak, random, slot, false),
        4 => {
            tell(soak, "redis: connections are cut");
            let trouble = InTrouble::begin(soak, 0.0);
            each_node(soak, &["CLIENT", "KILL", "TYPE", "normal"]);
            trouble.await_well(soak, "redis cut", slot, None);
            trouble.end(soak);
        }
        5 | 6 => {
            let pause = random.u64(60..500);
            tell(soak, &format!("redis: the primary of slot {slot} is slow by {pause} ms"));
            let trouble = InTrouble::begin(soak, 0.0);
            let primary = soak.fleet.cluster.primary_of(slot);
            let _ = primary.try_command(&["CLIENT", "PAUSE", &pause.to_string(), "ALL"]);
            soak.sleep(pause as f64 / 1000.0);
            trouble.await_well(soak, "redis slow", slot, None);
            trouble.end(soak);
        }
        7 => {
            // Nobody is to notice.
            tell(soak, "redis: scripts are flushed");
            each_node(soak, &["SCRIPT", "FLUSH"]);
        }
        _ => {
            // Nor this.
            tell(soak, &format!("redis: a replica of slot {slot} is killed"));
            let replica = soak.fleet.cluster.replica_of(slot);
            replica.kill();
            soak.sleep(random.f64() * 2.0);
            replica.restart();
        }
    }
    // Else two of the same slots may be gone at once, and then all of it is lost.
    for slot in SLOTS {
        let _ = soak.fleet.cluster.replica_of(slot);
    }
}

fn kill_primary(soak: &Soak, random: &mut fastrand::Rng, slot: u16) {
    let primary = soak.fleet.cluster.primary_of(slot);
    // Either it is back, and empty, before anybody took over; or it stays away until somebody has.
    let back = (random.u8(..3) == 0).then(|| random.f64() * 0.8);
    let told = if back.is_some() { ", and started again" } else { "" };
    tell(soak, &format!("redis: the primary of slot {slot} is killed{told}"));
    let trouble = InTrouble::begin(soak, 1.0);
    let begun = soak.now();
    primary.kill();
    if let Some(back) = back {
        soak.sleep(back);
        primary.restart();
    }
    let served = trouble.await_well(soak, "redis killed", slot, None);
    soak.recovered_by("failover", begun, served, FAILOVER);
    if back.is_none() {
        primary.restart();
    }
    trouble.end(soak);
}

/// One that hangs for longer than a second is replaced, and does not know it when it goes on: two may grant at once.
fn hang_primary(soak: &Soak, random: &mut fastrand::Rng, slot: u16, is_replaced: bool) {
    let primary = soak.fleet.cluster.primary_of(slot);
    let told = if is_replaced { "until it is replaced" } else { "and goes on soon" };
    tell(soak, &format!("redis: the primary of slot {slot} hangs, {told}"));
    let trouble = InTrouble::begin(soak, if is_replaced { 2.0 } else { 0.0 });
    let begun = soak.now();
    primary.hang();
    if is_replaced {
        let served = trouble.await_well(soak, "redis hung", slot, Some(primary));
        soak.recovered_by("failover", begun, served, FAILOVER);
        primary.resume();
    } else {
        soak.sleep(0.1 + random.f64() * 0.4);
        primary.resume();
        trouble.await_well(soak, "redis paused", slot, None);
    }
    trouble.end(soak);
}

/// What is begun when Redis is in trouble, to be ended when it is well again. What may be forgotten is told in
/// limits.
struct InTrouble {
    number: usize,
    besides: Vec<Besides>,
}

impl InTrouble {
    fn begin(soak: &Soak, forgets: f64) -> Self {
        let number = soak.troubles.begin(Trouble::Store, soak.now());
        let mut besides = vec![soak.decided_locally()];
        if forgets > 0.0 {
            besides.push(soak.redis_forgets(forgets));
        }
        Self { number, besides }
    }

    /// Waits until Redis itself serves the slot, but for who hangs, and all who are not in trouble themselves ask it
    /// again; they have a second from then on. Tells when that began.
    fn await_well(
        &self,
        soak: &Soak,
        fault: &'static str,
        slot: u16,
        hangs: Option<&RedisServer>,
    ) -> f64 {
        let client = prober(soak);
        let (mut served, mut asked) = (soak.now(), soak.now());
        let mut waiting = ON_REDIS.to_vec();
        await_well(soak, fault, || {
            if !serves(soak, slot, hangs) {
                // Or not any more: who has just come back may be replaced all the same.
                (served, waiting) = (soak.now(), ON_REDIS.to_vec());
                return false;
            }
            waiting.retain(|door| {
                if !soak.is_open(*door) {
                    return false;
                }
                let asking = soak.now();
                let is_well = asks_redis(soak, &client, *door);
                if is_well {
                    asked = asking;
                }
                !is_well && soak.is_open(*door)
            });
            waiting.is_empty()
        });
        soak.recovered_by(fault, served, asked, BACK);
        served
    }

    fn end(&self, soak: &Soak) {
        // One that was replaced needs that long to hear of it.
        soak.sleep(0.5);
        soak.troubles.end(self.number, soak.now());
        for besides in &self.besides {
            soak.no_more(besides);
        }
    }
}

/// Whether Redis itself takes what is written to keys near this slot.
fn serves(soak: &Soak, near: u16, hangs: Option<&RedisServer>) -> bool {
    let share = |slot: u16| SLOTS.iter().filter(|first| **first <= slot).count();
    let mut keys = (0..).map(|number| format!("whether redis serves {number}"));
    let Some(key) = keys.find(|key| share(slot(key.as_bytes())) == share(near)) else {
        return false;
    };
    let nodes = soak.fleet.cluster.nodes().iter();
    let mut asked = nodes.filter(|node| hangs.is_none_or(|hangs| hangs.port() != node.port()));
    asked.any(|node| {
        node.try_command(&["SET", &key, "", "PX", "1000"]).is_ok_and(|reply| reply.is_ok())
    })
}

/// All that answer.
fn each_node(soak: &Soak, command: &[&str]) {
    for node in soak.fleet.cluster.nodes() {
        if let Ok(Reply::Error(error)) = node.try_command(command) {
            soak.wrong(&format!("{command:?}: {error}"));
        }
    }
}
