//! What is between callers, instances and the backend breaks, or is slow.

use std::time::Duration;

use dashpot_testkit::{Fault, Proxy};

use super::{await_well, prober, tell};
use crate::fleet::Door;
use crate::recovery::BACK;
use crate::soak::Soak;
use crate::troubles::Trouble;

/// Who was under way meanwhile has arrived by then.
const ARRIVED: f64 = 0.3;

pub(super) fn break_something(soak: &Soak, random: &mut fastrand::Rng) {
    let doors = Door::ALL.len();
    let which = random.usize(..=doors);
    let Some(&door) = Door::ALL.get(which) else {
        let number = soak.troubles.begin(Trouble::Backend, soak.now());
        break_network(soak, random, &soak.fleet.upstream, "backend");
        soak.sleep(ARRIVED);
        soak.troubles.end(number, soak.now());
        return;
    };
    let network = &soak.fleet.member(door).network;
    let number = soak.troubles.begin(Trouble::Network(door), soak.now());
    break_network(soak, random, network, door.name());
    let client = prober(soak);
    let url = format!("http://{}/healthz", network.address());
    // Whoever it leads to may be gone or stand still just now, and then the network is not to blame.
    let mut is_there = true;
    let took = await_well(soak, "network", || {
        let asked = soak.now();
        let reached = soak.runtime.block_on(async { client.get(&url).send().await });
        let itself = [Trouble::Gone(door), Trouble::Slow(door)];
        is_there &= !itself.iter().any(|one| soak.troubles.touched(*one, asked, soak.now()));
        reached.is_ok() || !is_there
    });
    soak.sleep(ARRIVED);
    soak.troubles.end(number, soak.now());
    if is_there {
        soak.recovered("network", took, BACK);
    }
}

fn break_network(soak: &Soak, random: &mut fastrand::Rng, network: &Proxy, name: &str) {
    let seconds = 0.1 + random.f64() * 1.9;
    let millis = Duration::from_millis(random.u64(10..200));
    let (fault, told) = match random.u8(..5) {
        0 => (Fault::None, "is cut".to_owned()),
        1 => (Fault::Delay(millis), format!("is slow by {millis:?} for {seconds:.1} s")),
        2 => (Fault::Hang, format!("hangs for {seconds:.1} s")),
        3 => (Fault::Drop, format!("swallows everything for {seconds:.1} s")),
        _ => (Fault::Refuse, format!("refuses for {seconds:.1} s")),
    };
    tell(soak, &format!("the network to {name} {told}"));
    if fault == Fault::None {
        network.cut();
        return;
    }
    network.set(fault);
    soak.sleep(seconds);
    network.set(Fault::None);
    if fault == Fault::Drop {
        // Half of what was said is gone: nobody can go on there.
        network.cut();
    }
}
