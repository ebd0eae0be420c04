//! Whatever requests do, a limit changes for a reason: every change is one that the rule allows, by those who began since the last
//! one.

use std::time::Duration;

use dashpot::{Class, Clock, Gate, ManualClock, Pass, Timestamp};
use dashpot_testkit::strategies::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

const LATENCY: Duration = Duration::from_millis(50);
const TICK: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    None,
    Good,
    Bad,
}

#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    /// Somebody answers.
    Say(usize, Word),
    /// Somebody answers, and goes.
    End(usize, Word),
    Pass(Duration),
}

/// Of ten who end so many do not end well.
fn step(bad: u32) -> impl Strategy<Value = Step> {
    let word = move || {
        prop_oneof![
            10 - bad => Just(Word::Good),
            bad => prop::sample::select(vec![Word::Bad, Word::None]),
        ]
    };
    prop_oneof![
        4 => (1_usize..8).prop_map(Step::Begin),
        3 => (any::<usize>(), word()).prop_map(|(who, word)| Step::Say(who, word)),
        12 => (any::<usize>(), word()).prop_map(|(who, word)| Step::End(who, word)),
        3 => (0_u64..10).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
    ]
}

/// Long days, of which some are all good.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        2 => vec(step(0), 200..600),
        1 => vec(step(1), 200..600),
        1 => vec(step(4), 200..600)
    ]
}

struct Request {
    began: Timestamp,
    pass: Option<Pass>,
    /// What they said, and when.
    said: Option<(Timestamp, Word)>,
}

struct Scene {
    gate: Gate,
    clock: ManualClock,
    bounds: (u64, u64),
    /// Where the limit began.
    start: u64,
    /// All who began since the last change.
    since: Vec<Request>,
    /// Who began before.
    before: Vec<Pass>,
    changed: Timestamp,
    limit: u64,
    /// The most who were in since the last change.
    most: u64,
}

impl Scene {
    fn new(limit: u64, bounds: (u64, u64)) -> Self {
        let clock = ManualClock::default();
        let gate = Gate::builder(limit).latency(LATENCY).tick(TICK).min(bounds.0).max(bounds.1);
        let gate = gate.clock(clock.clone()).build();
        let (since, before) = (Vec::new(), Vec::new());
        let (changed, start) = (clock.now(), limit);
        Self { gate, bounds, start, since, before, changed, clock, limit, most: 0 }
    }

    fn step(&mut self, step: &Step) -> TestCaseResult {
        match *step {
            Step::Begin(many) => {
                for _ in 0..many {
                    // That they come may be what ends a round; they are of the next then.
                    let pass = self.gate.try_enter(Class::Normal).ok();
                    self.look()?;
                    let began = self.clock.now();
                    self.since.extend(pass.map(|it| Request { began, pass: Some(it), said: None }));
                    self.most = self.most.max(self.gate.status().in_flight);
                }
            }
            Step::Say(who, word) | Step::End(who, word) => {
                let ends = matches!(step, Step::End(..));
                let inside = self.since.iter_mut().filter(|one| one.pass.is_some());
                let mut inside: Vec<_> = inside.collect();
                let all = inside.len() + self.before.len();
                let Some(who) = who.checked_rem(all) else { return Ok(()) };
                if who >= inside.len() {
                    let before = who - inside.len();
                    let mut pass = self.before.swap_remove(before);
                    say(&mut pass, word);
                } else {
                    let one = &mut inside[who];
                    say(one.pass.as_mut().expect("they are in"), word);
                    if one.said.is_none() && (ends || word != Word::None) {
                        one.said = Some((self.clock.now(), word));
                    }
                    if ends {
                        one.pass = None;
                    }
                }
            }
            Step::Pass(time) => self.clock.advance(time),
        }
        self.look()
    }

    /// What has become of the limit.
    fn look(&mut self) -> TestCaseResult {
        let (now, limit) = (self.clock.now(), self.gate.status().limit);
        let before = self.limit;
        if limit == before {
            return Ok(());
        }
        prop_assert!(now.since(self.changed) >= TICK, "{before}, and soon {limit}");
        prop_assert!((self.bounds.0..=self.bounds.1).contains(&limit), "{limit}");
        if limit > before {
            prop_assert_eq!(limit, before + 1);
            let is_used = 2 * self.most >= before || before < self.start;
            prop_assert!(is_used, "{} of {before} in use", self.most);
            let good = self.since.iter().any(|one| one.said.is_some_and(|it| it.1 == Word::Good));
            prop_assert!(good, "nobody who began since has answered");
        } else {
            prop_assert_eq!(limit, (before * 9 / 10).max(self.bounds.0));
            let is_bad = |one: &Request| {
                let (until, word) = one.said.unwrap_or((now, Word::None));
                word == Word::Bad || until.since(one.began) > LATENCY
            };
            prop_assert!(self.since.iter().any(is_bad), "nobody who began since is to blame");
        }
        self.before.extend(self.since.drain(..).filter_map(|one| one.pass));
        (self.limit, self.changed) = (limit, now);
        // Who leaves now may have been what ended the round, and was in when the next one began.
        self.most = self.gate.status().in_flight + 1;
        Ok(())
    }
}

fn say(pass: &mut Pass, word: Word) {
    match word {
        Word::Good => pass.succeeded(),
        Word::Bad => pass.failed(),
        Word::None => {}
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_limit_changes_for_a_reason(
        limit in 4_u64..30, bounds in (1_u64..5, 25_u64..60), steps in steps()
    ) {
        let mut scene = Scene::new(limit.min(bounds.1), bounds);
        for step in &steps {
            scene.step(step)?;
        }
        drop(scene.since);
        drop(scene.before);
        prop_assert_eq!(scene.gate.status().in_flight, 0);
    }
}
