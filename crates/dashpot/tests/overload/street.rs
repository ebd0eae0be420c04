//! A gate, everybody who has to do with it, and the model beside it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use dashpot::{
    Class, Clock, Enter, Gate, GateBuilder, ManualClock, Pass, Percent, Shed, Timestamp,
};
use dashpot_testkit::Bell;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use crate::line_model::{Model, Settings};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Try(Class),
    Enter(Class),
    /// Enters, and looks later.
    Hesitate(Class),
    Anyway,
    /// Somebody in line, or who hesitates, looks for no reason.
    Look(usize),
    /// Somebody in line, or who hesitates, goes away.
    GiveUp(usize),
    /// Somebody who is in is done: 0 says nothing, 1 that it went well, 2 that it did not, 3 panics.
    Leave(usize, u8),
    Pass(Duration),
    Adjust(u64),
}

struct Caller {
    class: Class,
    future: Pin<Box<Enter>>,
    bell: Arc<Bell>,
    heard: usize,
    /// When they looked for the first time, by number: only then they are in line.
    looked: Option<usize>,
    until: Timestamp,
}

pub(crate) struct Street {
    pub(crate) gate: Gate,
    clock: ManualClock,
    pub(crate) model: Model,
    callers: BTreeMap<usize, Caller>,
    pub(crate) inside: BTreeMap<usize, Pass>,
    came: usize,
    looks: usize,
    /// Whether everybody who is woken looks at once.
    prompt: bool,
}

impl Street {
    pub(crate) fn new(settings: Settings, prompt: bool) -> Self {
        let clock = ManualClock::default();
        let gate = Self::builder(&settings, &clock).build();
        let model = Model::new(settings, clock.now());
        let (callers, inside) = (BTreeMap::new(), BTreeMap::new());
        Self { gate, clock, model, callers, inside, came: 0, looks: 0, prompt }
    }

    fn builder(settings: &Settings, clock: &ManualClock) -> GateBuilder {
        Gate::builder(settings.limit)
            .places(settings.places as u64)
            .wait(settings.wait)
            .part(Class::Normal, Percent::new(settings.normal))
            .part(Class::Background, Percent::new(settings.background))
            .clock(clock.clone())
    }

    pub(crate) fn step(&mut self, step: &Step) -> TestCaseResult {
        let who = self.came;
        match *step {
            Step::Try(class) => {
                self.came += 1;
                let pass = self.gate.try_enter(class);
                if self.prompt {
                    prop_assert_eq!(pass.is_ok(), self.model.try_enter(who, class));
                }
                match pass {
                    Ok(pass) => self.has_entered(who, class, pass)?,
                    Err(shed) => prop_assert_eq!(shed, Shed::Full),
                }
            }
            Step::Enter(class) => {
                self.add(class);
                self.look(who)?;
            }
            Step::Hesitate(class) => self.add(class),
            Step::Anyway => {
                self.came += 1;
                self.inside.insert(who, self.gate.enter_anyway());
                self.model.inside.push(who);
            }
            Step::Look(number) => {
                if let Some(who) = nth(&self.callers, number) {
                    self.look(who)?;
                }
            }
            Step::GiveUp(number) => {
                if let Some(who) = nth(&self.callers, number) {
                    self.callers.remove(&who);
                    self.model.leave(who);
                }
            }
            Step::Leave(number, word) => {
                if let Some(who) = nth(&self.inside, number) {
                    let pass = self.inside.remove(&who).expect("they are in");
                    leave(pass, word);
                    self.model.leave(who);
                }
            }
            Step::Pass(time) => {
                self.clock.advance(time);
                self.model.now = self.clock.now();
            }
            Step::Adjust(limit) => {
                self.model.settings.limit = limit.max(1);
                let settings = Settings { limit, ..self.model.settings.clone() };
                self.gate.adjust(Self::builder(&settings, &self.clock));
            }
        }
        Ok(())
    }

    fn add(&mut self, class: Class) {
        let until = self.clock.now().after(self.model.settings.wait);
        let future = Box::pin(self.gate.enter(class));
        let caller = Caller { class, future, bell: Arc::default(), heard: 0, looked: None, until };
        self.callers.insert(self.came, caller);
        self.came += 1;
    }

    /// Somebody looks whether it is their turn.
    fn look(&mut self, who: usize) -> TestCaseResult {
        let caller = self.callers.get_mut(&who).expect("they are there");
        let class = caller.class;
        if caller.looked.is_none() && caller.until <= self.clock.now() {
            // Too late to look for the first time: see `order.rs`.
            self.callers.remove(&who);
            return Ok(());
        }
        if caller.looked.is_none() {
            caller.looked = Some(self.looks);
            self.model.enter(who, class, caller.until);
        }
        self.looks += 1;
        caller.heard = caller.bell.rings();
        let waker = caller.bell.waker();
        let Poll::Ready(turn) = caller.future.as_mut().poll(&mut Context::from_waker(&waker))
        else {
            return Ok(());
        };
        if self.prompt {
            self.model.settle();
            let turned = turn.as_ref().map(|_| ()).map_err(|shed| *shed);
            let news = self.model.news.iter().position(|(one, _)| *one == who);
            let expected = news.map(|news| self.model.news.swap_remove(news).1);
            prop_assert_eq!(Some(turned), expected, "{}", who);
        }
        match turn {
            Ok(pass) => self.has_entered(who, class, pass)?,
            Err(_) => drop(self.callers.remove(&who)),
        }
        Ok(())
    }

    fn has_entered(&mut self, who: usize, class: Class, pass: Pass) -> TestCaseResult {
        let looked = self.callers.remove(&who).map_or(Some(self.looks), |one| one.looked);
        self.inside.insert(who, pass);
        let status = self.gate.status();
        prop_assert!(status.in_flight <= self.model.settings.most(class), "{class}: {status:?}");
        if !self.prompt {
            // Who is before them, and has heard nothing, finds room as well.
            let before = |one: &&Caller| {
                let first = (one.class, Reverse(one.looked)) > (class, Reverse(looked));
                first && one.looked.is_some() && one.bell.rings() == one.heard
            };
            let ahead = self.callers.values().filter(before).count() as u64;
            prop_assert!(status.in_flight + ahead <= status.limit, "{ahead} before: {status:?}");
        }
        Ok(())
    }

    fn woken(&self) -> Option<usize> {
        // The newest first: it is not those who look first who get in.
        let mut callers = self.callers.iter().rev();
        callers.find(|(_, caller)| caller.bell.rings() > caller.heard).map(|(who, _)| *who)
    }

    pub(crate) fn serve(&mut self) -> TestCaseResult {
        while let Some(who) = self.woken() {
            self.look(who)?;
        }
        Ok(())
    }

    /// Whether one of this class is in line.
    pub(crate) fn waits(&self, class: Class) -> bool {
        self.callers.values().any(|one| one.looked.is_some() && one.class == class)
    }

    /// What anybody can see is what the model says.
    pub(crate) fn compare(&mut self) -> TestCaseResult {
        self.model.settle();
        self.serve()?;
        prop_assert!(self.model.news.is_empty(), "not told: {:?}", self.model.news);
        let status = self.gate.status();
        prop_assert_eq!(status.limit, self.model.settings.limit);
        prop_assert_eq!(status.in_flight, self.model.inside.len() as u64);
        prop_assert_eq!(status.waiting, self.model.waiting() as u64);
        for class in Class::ALL {
            let closed = self.model.is_closed_to(class);
            prop_assert_eq!(self.gate.is_closed_to(class), closed, "{}", class);
        }
        Ok(())
    }

    /// All who are in leave, one by one; in the end nobody is anywhere.
    pub(crate) fn clear(mut self) -> TestCaseResult {
        while let Some((who, pass)) = self.inside.pop_first() {
            drop(pass);
            self.model.leave(who);
            self.serve()?;
        }
        let in_line = self.callers.values().filter(|one| one.looked.is_some()).count();
        prop_assert_eq!(in_line, 0, "all who waited were served");
        let status = self.gate.status();
        prop_assert_eq!((status.in_flight, status.waiting), (0, 0));
        let all: Result<Vec<_>, _> =
            (0..status.limit).map(|_| self.gate.try_enter(Class::Critical)).collect();
        prop_assert!(all.is_ok(), "there is room for as many as ever");
        Ok(())
    }
}

fn nth<T>(all: &BTreeMap<usize, T>, number: usize) -> Option<usize> {
    all.keys().nth(number.checked_rem(all.len())?).copied()
}

fn leave(mut pass: Pass, word: u8) {
    match word {
        1 => pass.succeeded(),
        2 => pass.failed(),
        3 => {
            let work = AssertUnwindSafe(|| {
                let _pass = pass;
                // As a panic does, but silently.
                resume_unwind(Box::new("the work has panicked"));
            });
            assert!(catch_unwind(work).is_err());
        }
        _ => drop(pass),
    }
}
