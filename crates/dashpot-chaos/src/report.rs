//! What came of it, and what has to hold in the end.

use std::collections::BTreeMap;

use crate::fleet::Door;
use crate::memory::Memory;
use crate::rules::FLOOD;
use crate::soak::{Soak, lock};

/// Of what a limit lets pass, so much was let pass at least, whatever was broken.
const SERVED: f64 = 0.3;

/// Of all calls, so many may find Redis late though nothing is broken, on a machine that has much else to do.
const LATE: f64 = 0.002;

/// Tells all of it, and whether it is well.
pub(crate) fn tell(soak: &Soak, memory: &Memory) -> bool {
    let length = soak.now();
    println!("\nlimit          admitted    denied   excused   longest ms");
    for (name, calls) in lock(&soak.calls).iter() {
        let longest = calls.longest * 1000.0;
        println!(
            "{name:12} {:10} {:9} {:9} {longest:12.0}",
            calls.admitted, calls.denied, calls.excused
        );
    }

    println!("\nof its bound, where nothing was lost: the most that was admitted in any time");
    for (name, fullest) in fullest(soak) {
        println!("{name:12} {:9.1} %", fullest * 100.0);
    }

    println!("\nfault          times    median s   longest s");
    for (name, times) in lock(&soak.faults).iter_mut() {
        times.sort_by(f64::total_cmp);
        let longest = times.last().copied().unwrap_or_default();
        println!("{name:14} {:5} {:11.3} {longest:11.3}", times.len(), times[times.len() / 2]);
    }

    println!("\nmemory MB      second quarter   last quarter");
    let all = memory.most(length);
    if all.len() < Door::ALL.len() {
        soak.wrong("some instance's memory was never seen");
    }
    for (door, most) in all {
        println!("{door:14} {:14.1} {:14.1}", most.before / 1e6, most.after / 1e6);
        if !most.is_flat() {
            soak.wrong(&format!("{door}: its memory grows, or was not seen"));
        }
    }
    println!();

    hold(soak, length);
    let (count, wrong) = soak.all_wrong();
    if count == 0 {
        println!("seed {}: {length:.0} s, nothing went wrong", soak.seed);
        return true;
    }
    for told in wrong {
        println!("{told}");
    }
    println!(
        "seed {}: {count} things went wrong; again: scripts/chaos --seed {}",
        soak.seed, soak.seed
    );
    false
}

fn fullest(soak: &Soak) -> BTreeMap<&'static str, f64> {
    let mut fullest = BTreeMap::new();
    let limits = soak.limits();
    for counted in limits.values().filter(|counted| counted.limit.name != FLOOD.name) {
        let most: &mut f64 = fullest.entry(counted.limit.name).or_default();
        *most = most.max(counted.tally.fullest());
    }
    fullest
}

/// What has to hold in the end.
fn hold(soak: &Soak, length: f64) {
    let calls: u64 = lock(&soak.calls).values().map(|calls| calls.admitted + calls.denied).sum();
    let late = soak.how_often_late();
    println!("Redis was late {late} times without a reason, in {calls} calls");
    if late as f64 > (calls as f64).mul_add(LATE, 5.0) {
        soak.wrong("Redis is late too often without a reason");
    }
    for (name, calls) in lock(&soak.calls).iter() {
        if calls.admitted == 0 {
            soak.wrong(&format!("{name}: nobody was ever admitted"));
        }
    }
    for (key, counted) in soak.limits().iter() {
        let least = counted.tally.bound().per_second * length * SERVED;
        // Those with manners may be fewer than would be let pass, and of two callers of one limit one may get more.
        let many = counted.limit.calls > 3.0;
        if many && (counted.tally.admitted() as f64) < least {
            soak.wrong(&format!(
                "{key}: only {} admitted, at least {least:.0}",
                counted.tally.admitted()
            ));
        }
    }
    for door in Door::ALL {
        let instance = &soak.fleet.member(door).instance;
        if !instance.lives() {
            soak.wrong(&format!("{} does not answer in the end", door.name()));
        }
        if instance.panicked() {
            soak.wrong(&format!("{} panicked:\n{}", door.name(), instance.log()));
        }
    }
    let for_ever = soak.fleet.cluster.keys_without_ttl();
    if let Some(key) = for_ever.first() {
        soak.wrong(&format!(
            "{} keys never expire: {}",
            for_ever.len(),
            String::from_utf8_lossy(key)
        ));
    }
}
