//! New rules: factors, gates and those who are in them go on under the same name.

use std::time::Duration;

use dashpot::{Class, GateStatus, ManualClock, Percent, Shed, Vitals};
use dashpot_rules::{LiveRules, RuleSet};
use dashpot_testkit::block_on;

use super::{HOUR, SECOND, at, healthy, named, parse};
use crate::common::temp_dir::TempDir;

struct Scene {
    live: LiveRules,
    clock: ManualClock,
}

impl Scene {
    fn new(file: &str) -> Self {
        let clock = ManualClock::default();
        Self { live: LiveRules::new(parse(file, &clock)), clock }
    }

    fn replace(&self, file: &str) {
        self.live.replace(parse(file, &self.clock));
    }

    fn percent(&self) -> u8 {
        self.live.current().rules()[0].adaptive().expect("it adapts").percent()
    }

    fn push(&self, vitals: Vitals, lasts: Duration) {
        self.live.current().rules()[0].adaptive().expect("it adapts").push(vitals, lasts);
    }

    fn wait(&self, seconds: u32) -> u8 {
        self.clock.advance(SECOND * seconds);
        self.percent()
    }

    fn gate(&self) -> dashpot::Gate {
        self.live.current().rules()[0].gate().expect("a gate").clone()
    }

    fn status(&self) -> GateStatus {
        self.gate().status()
    }
}

fn adaptive(settings: &str) -> String {
    format!("[[rule]]\nname = 'api'\nlimits = '100/s'\nadaptive = {{ cpu = 'off', {settings} }}\n")
}

fn capacity(settings: &str) -> String {
    format!("[[rule]]\nname = 'worker'\ncapacity = {{ {settings} }}\n")
}

fn stressed() -> Vitals {
    Vitals { errors: Some(Percent::new(90)), ..healthy() }
}

#[test]
fn a_factor_goes_on() {
    let scene = Scene::new(&adaptive(""));
    scene.push(stressed(), HOUR);
    assert_eq!(scene.wait(2), 81);
    scene.replace(&adaptive(""));
    assert_eq!(scene.percent(), 81);
    // And so does what was told.
    assert_eq!(scene.wait(1), 72);
    scene.replace(&adaptive("").replace("100/s", "50/s"));
    assert_eq!(scene.wait(1), 65);
}

#[test]
fn a_factor_goes_on_by_other_settings() {
    let scene = Scene::new(&adaptive("floor = '20%'"));
    scene.push(stressed(), HOUR);
    assert_eq!(scene.wait(12), 28);
    scene.replace(&adaptive("floor = '60%'"));
    assert_eq!(scene.percent(), 60, "it is no lower than the least");
    scene.replace(&adaptive("floor = '20%', down = '80%'"));
    assert_eq!(scene.wait(1), 48);
    scene.replace(&adaptive("floor = '20%', tick = '10s'"));
    assert_eq!(scene.wait(9), 48);
    assert_eq!(scene.wait(1), 43);
}

#[test]
fn what_was_counted_before_counts_after() {
    let scene = Scene::new(&adaptive(""));
    let fail = |count: usize| {
        let adaptive = scene.live.current().rules()[0].adaptive().unwrap().clone();
        (0..count).for_each(|_| adaptive.answered(adaptive.begin(), false));
    };
    fail(15);
    scene.replace(&adaptive(""));
    fail(15);
    assert_eq!(scene.wait(1), 90);
}

/// One that began under the old rules ends under the new ones.
#[test]
fn who_began_before_is_told_of_after() {
    let scene = Scene::new(&adaptive(""));
    let old = scene.live.current();
    let began = old.rules()[0].adaptive().unwrap().begin();
    scene.replace(&adaptive(""));
    (0..20).for_each(|_| old.rules()[0].adaptive().unwrap().answered(began, false));
    drop(old);
    assert_eq!(scene.wait(1), 90);
}

#[test]
fn a_rule_of_another_name_begins_anew() {
    let scene = Scene::new(&adaptive(""));
    scene.push(stressed(), HOUR);
    assert_eq!(scene.wait(2), 81);
    scene.replace(&adaptive("").replace("'api'", "'other'"));
    assert_eq!(scene.wait(1), 100);
}

#[test]
fn who_is_in_stays_in() {
    let scene = Scene::new(&capacity("limit = 2, places = 0"));
    let inside: Vec<_> = (0..2).map(|_| scene.gate().try_enter(Class::Normal).unwrap()).collect();
    scene.replace(&capacity("limit = 2, places = 0"));
    assert_eq!(scene.status().in_flight, 2);
    assert!(scene.gate().try_enter(Class::Normal).is_err(), "there is no room twice");
    scene.replace(&capacity("limit = 3, places = 0"));
    let third = scene.gate().try_enter(Class::Normal).unwrap();
    scene.replace(&capacity("limit = 1, places = 0"));
    assert_eq!((scene.status().in_flight, scene.status().limit), (3, 1));
    drop((inside, third));
    assert_eq!(scene.status().in_flight, 0, "each leaves once");
    let _one = scene.gate().try_enter(Class::Normal).unwrap();
    assert!(scene.gate().try_enter(Class::Normal).is_err());
}

#[test]
fn who_waits_goes_on_waiting_and_comes_in() {
    let scene = Scene::new(&capacity("limit = 1, places = 2"));
    let first = scene.gate().try_enter(Class::Normal).unwrap();
    let mut waiting = Box::pin(scene.gate().enter(Class::Normal));
    assert!(is_pending(&mut waiting));
    scene.replace(&capacity("limit = 1, places = 2"));
    assert_eq!(scene.status().waiting, 1);
    assert!(is_pending(&mut waiting));
    // A higher limit is room at once.
    scene.replace(&capacity("limit = 2, places = 2"));
    let second = block_on(waiting).unwrap();
    assert_eq!((scene.status().in_flight, scene.status().waiting), (2, 0));
    // The other way: who waits does so until there is room under the lower limit.
    let mut waiting = Box::pin(scene.gate().enter(Class::Normal));
    assert!(is_pending(&mut waiting));
    scene.replace(&capacity("limit = 1, places = 2"));
    drop(first);
    assert!(is_pending(&mut waiting));
    drop(second);
    assert!(block_on(waiting).is_ok());
}

fn is_pending(waiting: &mut std::pin::Pin<Box<dashpot::Enter>>) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    Future::poll(waiting.as_mut(), &mut context).is_pending()
}

#[test]
fn parts_and_places_are_the_new_ones() {
    let scene = Scene::new(&capacity("limit = 4, places = 0"));
    let enter = |class| scene.gate().try_enter(class);
    let _inside: Vec<_> = (0..2).map(|_| enter(Class::Background).unwrap()).collect();
    scene.replace(&(capacity("limit = 4, places = 0") + "classes.background = '50%'\n"));
    assert_eq!(enter(Class::Background).err(), Some(Shed::Full));
    assert!(enter(Class::Normal).is_ok());
    scene.replace(&capacity("limit = 4, places = 0"));
    assert!(enter(Class::Background).is_ok());
}

/// A limit that has found itself is not forgotten, within its new bounds.
#[test]
fn a_limit_that_has_adapted_stays() {
    let scene = Scene::new(&capacity("limit = 20, latency = '100ms'"));
    // All are slow, in a round of its own each.
    for _ in 0..3 {
        let inside: Vec<_> =
            (0..20).filter_map(|_| scene.gate().try_enter(Class::Normal).ok()).collect();
        scene.clock.advance(SECOND);
        drop(inside);
        drop(scene.gate().try_enter(Class::Normal));
        scene.clock.advance(SECOND);
    }
    let adapted = scene.status().limit;
    assert!(adapted < 20, "{adapted}");
    scene.replace(&capacity("limit = 20, latency = '100ms'"));
    assert_eq!(scene.status().limit, adapted);
    scene.replace(&capacity("limit = 30, latency = '100ms', wait = '5s'"));
    assert_eq!(scene.status().limit, adapted);
    scene.replace(&capacity("limit = 25, latency = '100ms', min = 22"));
    assert_eq!(scene.status().limit, 22);
    scene.replace(&capacity("limit = 5, latency = '100ms', max = 9"));
    assert_eq!(scene.status().limit, 9);
    // One that does not adapt is what it says.
    scene.replace(&capacity("limit = 7"));
    assert_eq!(scene.status().limit, 7);
}

#[test]
fn what_came_of_rules_and_priorities_goes_on() {
    let file = format!(
        "[[priority]]\nname = 'pay'\nmatch.path = '/pay'\nclass = 'critical'\n{}",
        "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 0 }\n"
    );
    let scene = Scene::new(&file);
    let count = |passed: bool| {
        let current = scene.live.current();
        let gates = current.select(&at("/pay")).plan(&at("/pay")).take_gates();
        if passed { gates.count(true) } else { gates.shed(named(&current, "worker")) }
    };
    let counts = || {
        let current = scene.live.current();
        let (name, tally) = current.priorities().next().expect("a priority");
        let denied = named(&current, "worker").tally().denied();
        (name.to_owned(), tally.allowed(), tally.denied(), denied)
    };
    count(true);
    count(false);
    assert_eq!(counts(), ("pay".to_owned(), 1, 1, 1));
    scene.replace(&file);
    count(false);
    assert_eq!(counts(), ("pay".to_owned(), 1, 2, 2));
}

/// From a file, as a program does it: by the machine's time.
#[test]
fn a_file_that_is_read_again_goes_on() {
    let dir = TempDir::new();
    let file = dir.write("rules.toml", &capacity("limit = 2, places = 0"));
    let live = LiveRules::new(RuleSet::load(&file).unwrap());
    let gate = || live.current().rules()[0].gate().unwrap().clone();
    let inside = gate().try_enter(Class::Normal).unwrap();
    dir.write("rules.toml", &capacity("limit = 1, places = 0"));
    live.reload(&file).unwrap();
    assert_eq!((gate().status().limit, gate().status().in_flight), (1, 1));
    // What is wrong changes nothing.
    dir.write("rules.toml", &capacity("limit = 0"));
    let told = live.reload(&file).expect_err("nobody would be served").to_string();
    assert!(told.contains("rules.toml:3:22: error: a capacity of 0"), "{told}");
    assert!(gate().try_enter(Class::Normal).is_err());
    drop(inside);
    assert!(gate().try_enter(Class::Normal).is_ok());
}

/// A limit for a while, and a capacity again: that is a new one, and nobody is in it.
#[test]
fn a_capacity_that_was_gone_begins_anew() {
    let scene = Scene::new(&capacity("limit = 1, places = 0"));
    let old = scene.gate().try_enter(Class::Normal).unwrap();
    scene.replace("[[rule]]\nname = 'worker'\nlimits = '5/s'\n");
    assert!(scene.live.current().rules()[0].gate().is_none());
    scene.replace(&capacity("limit = 1, places = 0"));
    assert_eq!(scene.status().in_flight, 0);
    let _new = scene.gate().try_enter(Class::Normal).unwrap();
    drop(old);
    assert_eq!(scene.status().in_flight, 1, "who leaves the old one does not leave the new one");
}
