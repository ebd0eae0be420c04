//! A limit with a factor, the server behind it and those who ask: each second the factor goes by how the server was.

use std::collections::HashMap;

use dashpot::{Factor, FactorSettings, Limiter, Percent, Policy, Timestamp, Vitals};

use crate::parts::Parts;
use crate::random::Random;
use crate::server::Server;
use crate::{SECOND, nanos};

/// Who waits for longer has gone, and that is an error.
const PATIENCE: u64 = SECOND;

/// How one second was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Second {
    pub(crate) percent: u8,
    /// How busy the workers were: 0 to 1.
    pub(crate) cpu: f64,
    pub(crate) admitted: u64,
    /// Of those who ended.
    pub(crate) errors: f64,
}

pub(crate) struct Service {
    parts: Parts,
    pub(crate) factor: Factor,
    limiter: Limiter,
    pub(crate) server: Server,
    /// From one who asks to the next, in nanoseconds; what each is for a worker; and how much both vary.
    pub(crate) every: u64,
    work: u64,
    pub(crate) spread: f64,
    random: Random,
    now: u64,
    next: u64,
    began: HashMap<usize, u64>,
    asked: usize,
    admitted: u64,
    ended: u64,
    failed: u64,
    pub(crate) seconds: Vec<Second>,
}

impl Service {
    pub(crate) fn new(limit: Policy, settings: FactorSettings, server: Server, work: u64) -> Self {
        let factor = Factor::new(settings);
        let parts = Parts::new(limit, Timestamp::EPOCH);
        let limiter = parts.at(factor.percent());
        Self {
            parts,
            factor,
            limiter,
            server,
            every: SECOND,
            work,
            spread: 0.0,
            random: Random::new(2),
            now: 0,
            next: 0,
            began: HashMap::new(),
            asked: 0,
            admitted: 0,
            ended: 0,
            failed: 0,
            seconds: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            let end = self.now + SECOND;
            while self.now < end {
                let events = [self.server.next_end(), Some(self.next), Some(end)];
                let now = events.into_iter().flatten().min().expect("there is an end");
                self.parts.clock.advance(nanos(now - self.now));
                self.now = now;
                self.server.advance(now);
                while let Some(who) = self.server.take_done() {
                    let began = self.began.remove(&who).expect("they are in");
                    self.ended += 1;
                    self.failed += u64::from(now - began > PATIENCE);
                }
                if now == self.next {
                    self.ask();
                }
            }
            self.tick();
        }
    }

    fn ask(&mut self) {
        self.next += self.random.around(self.every, self.spread).max(1);
        let work = self.random.around(self.work, self.spread);
        self.asked += 1;
        if self.limiter.check("everybody").is_allowed() {
            self.admitted += 1;
            self.began.insert(self.asked, self.now);
            self.server.begin(self.asked, work);
        }
    }

    fn tick(&mut self) {
        let cpu = self.server.take_load(SECOND);
        let errors = Percent::of(self.failed, self.ended);
        let percent = self.factor.percent();
        let admitted = std::mem::take(&mut self.admitted);
        self.seconds.push(Second { percent, cpu, admitted, errors: errors.as_fraction() });
        // They count when there are twenty, and until then add up.
        let known = self.ended >= 20;
        if known {
            (self.ended, self.failed) = (0, 0);
        }
        let cpu = Some(Percent::from_fraction(cpu));
        self.factor.tick(&Vitals { cpu, errors: known.then_some(errors), slow: None });
        self.limiter = self.parts.at(self.factor.percent());
    }
}
