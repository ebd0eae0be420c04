//! What came of it, and what has to hold in the end.

use std::collections::BTreeMap;

use dashpot_testkit::RedisCluster;

use crate::fleet::Door;
use crate::keys::Keys;
use crate::memory::Memory;
use crate::rules::UNBOUNDED;
use crate::soak::{Calls, Counted, Soak, lock};

/// Callers with manners give up so many of their calls, whatever is broken: who is refused several times in a row waits
/// for longer each time, and soon for longer than a caller has patience.
const GIVEN_UP: f64 = 0.2;

/// Of all calls, so many may find Redis late though nothing is broken, on a machine that has much else to do.
const LATE: f64 = 0.002;

/// Tells all of it, and whether it is well.
pub(crate) fn tell(soak: &Soak, memory: &Memory, keys: &Keys) -> bool {
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

    for (key, held) in lock(&soak.permits).iter() {
        let (most, longest) = (held.most, held.longest);
        println!("permits {key}: {most} at once, {longest:.1} s without any");
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
        let name = door.name();
        println!("{name:14} {:14.1} {:14.1}", most.before / 1e6, most.after / 1e6);
        if !most.is_flat(door) {
            soak.wrong(&format!("{name}: its memory grows, or was not seen"));
        }
    }
    println!("\nin memory: {}", keys.most());
    if let Err(wrong) = keys.most().judge() {
        soak.wrong(&wrong);
    }

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
    let bounded = limits.values().filter(|counted| counted.limit.bound.capacity < UNBOUNDED);
    for counted in bounded {
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
    let deadlines = *lock(&soak.deadlines);
    println!("{deadlines}");
    if let Err(wrong) = deadlines.judge() {
        soak.wrong(&wrong);
    }
    for (name, calls) in lock(&soak.calls).iter() {
        if let Err(wrong) = calls.judge() {
            soak.wrong(&format!("{name}: {wrong}"));
        }
    }
    for (key, counted) in soak.limits().iter() {
        if let Err(wrong) = judge_served(counted, length) {
            soak.wrong(&format!("{key}: {wrong}"));
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
    if let Err(wrong) = all_expire(&soak.fleet.cluster) {
        soak.wrong(&wrong);
    }
}

impl Calls {
    /// What is wrong with what came of them in the end, if anything is.
    fn judge(&self) -> Result<(), String> {
        if self.admitted == 0 {
            return Err("nobody was ever admitted".to_owned());
        }
        let all = self.admitted + self.denied + self.excused + self.given_up;
        if self.given_up as f64 > (all as f64).mul_add(GIVEN_UP, 5.0) {
            return Err(format!("{} of {all} were given up", self.given_up));
        }
        Ok(())
    }
}

/// What is wrong with how many were admitted, if anything is: too few of what may be.
fn judge_served(counted: &Counted, length: f64) -> Result<(), String> {
    let least = counted.tally.bound().per_second * length * counted.limit.served;
    let admitted = counted.tally.admitted();
    if (admitted as f64) < least {
        return Err(format!("only {admitted} admitted, at least {least:.0}"));
    }
    Ok(())
}

/// Whether nothing stays on Redis for ever.
fn all_expire(cluster: &RedisCluster) -> Result<(), String> {
    let for_ever = cluster.keys_without_ttl();
    let Some(key) = for_ever.first() else { return Ok(()) };
    Err(format!("{} keys never expire: {}", for_ever.len(), String::from_utf8_lossy(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{EACH, POLITE};

    #[test]
    fn callers_who_give_up_too_often_are_told() {
        let calls = |admitted, given_up| Calls { admitted, given_up, ..Calls::default() }.judge();
        calls(240, 60).unwrap();
        assert!(calls(230, 70).is_err());
        assert_eq!(calls(3, 297).unwrap_err(), "297 of 300 were given up");
        assert_eq!(calls(0, 0).unwrap_err(), "nobody was ever admitted");
    }

    #[test]
    fn who_is_not_served_is_told_whoever_it_is() {
        for (limit, least) in [(EACH, 30), (POLITE, 20)] {
            let mut counted = Counted::new(limit, Door::First);
            for call in 1..least {
                counted.tally.admit(f64::from(call), f64::from(call)).unwrap();
            }
            judge_served(&counted, 9.0).unwrap();
            let told = judge_served(&counted, 10.0).unwrap_err();
            assert_eq!(told, format!("only {} admitted, at least {least}", least - 1));
        }
    }

    #[test]
    fn a_key_that_never_expires_is_told() {
        let cluster = RedisCluster::start();
        let write = |key: &str, more: &[&str]| {
            let command = [&["SET", key, "1"], more].concat();
            let nodes = cluster.nodes().iter();
            assert!(nodes.map(|node| node.command(&command)).any(|reply| reply.is_ok()));
        };
        write("dashpot:{somebody}", &["PX", "60000"]);
        all_expire(&cluster).unwrap();
        write("dashpot:{somebody else}", &[]);
        let told = all_expire(&cluster).unwrap_err();
        assert_eq!(told, "1 keys never expire: dashpot:{somebody else}");
    }
}
