//! A gate, the server behind it and everybody who comes: the next thing that happens, then the next one after it.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use dashpot::{Class, Enter, Gate, GateBuilder, ManualClock, Pass, Shed, Timestamp};
use dashpot_testkit::Bell;

use crate::random::Random;
use crate::server::Server;
use crate::{SECOND, nanos};

/// Who comes, in nanoseconds. They do not wait for each other.
pub(crate) struct Load {
    /// From one to the next, on average.
    pub(crate) every: u64,
    /// What each is for a worker.
    pub(crate) work: u64,
    /// How much all this varies: 0 to 1.
    pub(crate) spread: f64,
    /// One in so many fails, at once; none, if 0.
    pub(crate) fails: u64,
}

/// Somebody who was answered.
pub(crate) struct Answer {
    pub(crate) at: u64,
    /// How long they were in.
    pub(crate) took: u64,
    /// How long that was since they came.
    pub(crate) in_all: u64,
}

struct Waiter {
    came: u64,
    future: Pin<Box<Enter>>,
    bell: Arc<Bell>,
    heard: usize,
}

struct Guest {
    came: u64,
    began: u64,
    pass: Pass,
    fails: bool,
}

pub(crate) struct Door {
    pub(crate) gate: Gate,
    clock: ManualClock,
    pub(crate) server: Server,
    pub(crate) load: Load,
    pub(crate) now: u64,
    wait: u64,
    next: u64,
    random: Random,
    /// In the order in which they came.
    line: Vec<Waiter>,
    inside: HashMap<usize, Guest>,
    came: usize,
    /// Every limit there was, and since when.
    pub(crate) limits: Vec<(u64, u64)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) turned_away: Vec<(u64, Shed)>,
}

impl Door {
    /// `wait` is how long the gate lets people wait.
    pub(crate) fn new(gate: GateBuilder, wait: u64, server: Server, load: Load) -> Self {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let gate = gate.wait(nanos(wait)).clock(clock.clone()).build();
        let limits = vec![(0, gate.status().limit)];
        Self {
            gate,
            clock,
            server,
            load,
            now: 0,
            wait,
            next: 0,
            random: Random::new(1),
            line: Vec::new(),
            inside: HashMap::new(),
            came: 0,
            limits,
            answers: Vec::new(),
            turned_away: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        while self.now < end {
            let too_late = self.line.first().map(|first| first.came + self.wait);
            let events = [self.server.next_end(), too_late, Some(self.next), Some(end)];
            let now = events.into_iter().flatten().min().expect("there is an end");
            self.now = now.max(self.now);
            self.clock.set(Timestamp::from_nanos(self.now));
            self.server.advance(self.now);
            while let Some(who) = self.server.take_done() {
                self.answer(who);
            }
            if self.now == self.next {
                self.next += self.random.around(self.load.every, self.load.spread).max(1);
                let future = Box::pin(self.gate.enter(Class::Normal));
                self.line.push(Waiter { came: self.now, future, bell: Arc::default(), heard: 0 });
                let newest = self.line.len() - 1;
                self.poll(newest);
            }
            self.serve();
            self.look();
        }
    }

    fn answer(&mut self, who: usize) {
        let mut guest = self.inside.remove(&who).expect("they are in");
        if guest.fails {
            guest.pass.failed();
        } else {
            guest.pass.succeeded();
        }
        let (took, in_all) = (self.now - guest.began, self.now - guest.came);
        self.answers.push(Answer { at: self.now, took, in_all });
    }

    /// Everybody who was woken, until nobody is.
    fn serve(&mut self) {
        while let Some(woken) = self.line.iter().position(|one| one.bell.rings() > one.heard) {
            self.poll(woken);
        }
    }

    /// Somebody in line looks whether it is their turn.
    fn poll(&mut self, place: usize) {
        let waiter = &mut self.line[place];
        waiter.heard = waiter.bell.rings();
        let waker = waiter.bell.waker();
        let Poll::Ready(turn) = waiter.future.as_mut().poll(&mut Context::from_waker(&waker))
        else {
            return;
        };
        let came = self.line.remove(place).came;
        match turn {
            Ok(pass) => {
                let fails = self.load.fails > 0 && self.random.below(self.load.fails) == 0;
                let work = self.random.around(self.load.work, self.load.spread);
                self.server.begin(self.came, if fails { work / 100 } else { work });
                self.inside.insert(self.came, Guest { came, began: self.now, pass, fails });
                self.came += 1;
            }
            Err(shed) => self.turned_away.push((self.now, shed)),
        }
    }

    fn look(&mut self) {
        let status = self.gate.status();
        assert_eq!(status.in_flight, self.server.in_service());
        assert_eq!(status.waiting, self.line.len() as u64);
        let (_, limit) = *self.limits.last().expect("there was one");
        if status.limit != limit {
            self.limits.push((self.now, status.limit));
        }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.gate.status().limit
    }

    /// The least and the most that the limit was from a moment on.
    pub(crate) fn limits_since(&self, since: u64) -> (u64, u64) {
        let before = self.limits.iter().rev().find(|(at, _)| *at <= since);
        let all = self.limits.iter().filter(|(at, _)| *at > since).chain(before);
        let limits = all.map(|(_, limit)| *limit);
        (limits.clone().min().expect("there was one"), limits.max().expect("there was one"))
    }

    /// How many were answered each second from one moment to another, in no more than so much time since they came.
    pub(crate) fn answered(&self, from: u64, to: u64, within: u64) -> f64 {
        let in_time = |one: &&Answer| (from..to).contains(&one.at) && one.in_all <= within;
        let answered = self.answers.iter().filter(in_time).count();
        answered as f64 * SECOND as f64 / (to - from) as f64
    }

    pub(crate) fn slowest_since(&self, since: u64) -> u64 {
        let later = self.answers.iter().filter(|one| one.at - one.took >= since);
        later.map(|one| one.took).max().expect("somebody was answered")
    }
}
