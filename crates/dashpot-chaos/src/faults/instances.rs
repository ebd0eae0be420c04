//! Instances are killed, told to end, stopped, given broken rules and a full disk.

use std::fs;
use std::time::Duration;

use dashpot_testkit::process::until;

use super::{asks_redis, await_well, disk, prober, tell};
use crate::fleet::Door;
use crate::instance::Instance;
use crate::recovery::{BACK, RULES, START};
use crate::soak::{Besides, Soak};
use crate::troubles::Trouble;

/// From this part of a soak on nobody ends who is to live on: one of those does before.
const LIVES: f64 = 0.2;
/// Longer than this nobody is asked for a figure.
const PATIENCE: Duration = Duration::from_secs(20);
/// Counts are saved every second; what was counted since, and while that is done, a kill loses.
pub(super) const UNSAVED: f64 = 2.5;

pub(super) fn break_something(soak: &Soak, random: &mut fastrand::Rng) {
    let door = Door::ALL[random.usize(..Door::ALL.len())];
    let fault = random.u8(..10);
    let lives = door.lives_on() && (door == Door::Second || soak.part() > LIVES);
    match if lives && fault < 5 { 5 } else { fault } {
        0..=2 => {
            tell(soak, &format!("{} is killed", door.name()));
            kill(soak, random, door, soak.now() - UNSAVED);
        }
        3 | 4 => {
            tell(soak, &format!("{} is told to end", door.name()));
            terminate(soak, random, door, None);
        }
        5 | 6 => stop(soak, random, door),
        7 => disk::fill(soak, random),
        _ => break_rules(soak, random, door),
    }
}

/// What is begun when an instance is in trouble, to be ended when it is well again.
struct Begun {
    /// Until it answers.
    itself: usize,
    /// And until it has found Redis, if it looks for it.
    finding: Option<usize>,
    local: Besides,
}

fn begin(soak: &Soak, door: Door, trouble: Trouble) -> Begun {
    let now = soak.now();
    let finding = || soak.troubles.begin(Trouble::Finding(door), now);
    Begun {
        itself: soak.troubles.begin(trouble, now),
        finding: (door != Door::Alone).then(finding),
        local: soak.decided_locally(),
    }
}

/// Waits until it answers, which it was to do from then on, and until Redis answers it if it answers anybody.
fn end(soak: &Soak, door: Door, begun: &Begun, (fault, at_most): (&'static str, f64), since: f64) {
    let client = prober(soak);
    await_well(soak, fault, || soak.fleet.member(door).instance.lives());
    soak.recovered(fault, soak.now() - since, at_most);
    let looking = soak.now();
    // Those whose connections were closed meanwhile have heard of it by then; from now on it is held to its deadline,
    // though it may have no store yet.
    soak.sleep(0.1);
    soak.troubles.end(begun.itself, soak.now());
    if let Some(finding) = begun.finding {
        let mut asked = looking;
        await_well(soak, fault, || {
            asked = soak.now();
            asks_redis(soak, &client, door)
        });
        // Unless there was nothing to be found.
        if !soak.troubles.touched(Trouble::Store, looking, soak.now()) {
            soak.recovered_by("redis found", looking, asked, BACK);
        }
        soak.troubles.end(finding, soak.now());
    }
    soak.no_more(&begun.local);
}

pub(super) fn kill(soak: &Soak, random: &mut fastrand::Rng, door: Door, saved: f64) {
    let member = soak.fleet.member(door);
    let begun = begin(soak, door, Trouble::Gone(door));
    member.instance.kill();
    // So that what it answered has arrived.
    soak.sleep(0.05 + random.f64());
    if door == Door::Alone {
        soak.memory_forgets(saved);
    }
    let started = soak.now();
    member.instance.start_again();
    end(soak, door, &begun, ("killed", START), started);
}

/// What it counts in memory is saved, unless the disk is full: since then.
pub(super) fn terminate(soak: &Soak, random: &mut fastrand::Rng, door: Door, saved: Option<f64>) {
    let member = soak.fleet.member(door);
    let begun = begin(soak, door, Trouble::Gone(door));
    let status = member.instance.terminate();
    // What could not be saved is told by it.
    if status.success() == saved.is_some() {
        let disk = if saved.is_some() { " while the disk was full" } else { "" };
        soak.wrong(&format!("{} was told to end{disk}: {status}", door.name()));
    }
    soak.sleep(0.05 + random.f64());
    if let Some(saved) = saved {
        soak.memory_forgets(saved);
    }
    let started = soak.now();
    member.instance.start_again();
    end(soak, door, &begun, ("ended", START), started);
}

fn stop(soak: &Soak, random: &mut fastrand::Rng, door: Door) {
    let seconds = 0.1 + random.f64() * 2.0;
    tell(soak, &format!("{} stands still for {seconds:.1} s", door.name()));
    let instance = &soak.fleet.member(door).instance;
    let begun = begin(soak, door, Trouble::Slow(door));
    instance.stop();
    soak.sleep(seconds);
    instance.go_on();
    end(soak, door, &begun, ("stopped", BACK), soak.now());
}

/// Rules that are broken change nothing, and those that come after them are read.
fn break_rules(soak: &Soak, random: &mut fastrand::Rng, door: Door) {
    tell(soak, &format!("{}: rules are broken", door.name()));
    let file = soak.fleet.rules(door);
    let good = fs::read_to_string(&file).expect("a rule file");
    let sharing =
        Door::ALL.into_iter().filter(|other| (*other == Door::Alone) == (door == Door::Alone));
    let instances: Vec<_> = sharing.map(|door| &soak.fleet.member(door).instance).collect();
    // Those that do not answer at once are asked again.
    let metric =
        |instance: &Instance, name: &str| until("metrics", PATIENCE, || instance.metric(name));
    let read = |name: &str| -> Vec<f64> {
        instances.iter().map(|instance| metric(instance, name)).collect()
    };
    let failed = read("dashpot_failed_reloads_total");
    let generation = read("dashpot_rules_generation");
    let broken = match random.u8(..3) {
        0 => good.get(..random.usize(..good.len())).unwrap_or_default().to_owned() + "\n[[rule",
        1 => good.replace("limits", "limit"),
        _ => String::new(),
    };
    fs::write(&file, broken).expect("a rule file");
    instances.iter().for_each(|instance| instance.reload());
    let rises = |name: &str, before: &[f64]| {
        read(name).iter().zip(before).all(|(now, before)| now > before)
    };
    let noticed =
        await_well(soak, "broken rules", || rises("dashpot_failed_reloads_total", &failed));
    soak.sleep(random.f64());
    if read("dashpot_rules_generation") != generation {
        soak.wrong("broken rules are used");
    }
    // The same, with one more that nobody asks for.
    let added = format!(
        "{good}\n[[rule]]\nname = \"more-{:08x}\"\nmatch = {{ path = \"/none\" }}\nlimits = [\"1/s\"]\n",
        random.u32(..)
    );
    fs::write(&file, added).expect("a rule file");
    instances.iter().for_each(|instance| instance.reload());
    let read = await_well(soak, "rules", || rises("dashpot_rules_generation", &generation));
    soak.recovered("rules broken", noticed + read, RULES);
}
