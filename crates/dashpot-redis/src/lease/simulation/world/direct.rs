//! Those who ask Redis itself.

use dashpot::{Cost, Timestamp};
use redis::Cmd;

use super::World;
use crate::question::Question;
use crate::recall::{Answer, Came};
use crate::script;

impl World {
    /// A question to Redis itself, and how it is put.
    pub(super) fn question_about(&self, cost: u64) -> (Question<'_>, Cmd) {
        let mut call = script::DECIDE.call(std::iter::once(self.name.as_slice()));
        call.arg(u8::from(cost > 0));
        let slot = &self.nodes[0].slot;
        let question = Question { key: self.name.clone(), ..slot.question(cost) };
        question.ask((cost, 0), Timestamp::from_nanos(self.now), 0, &mut call);
        (question, call)
    }

    /// Somebody asks Redis itself.
    pub(super) fn exact(&mut self, cost: u64) {
        let (question, call) = self.question_about(cost);
        let value = self.server.run(self.redis_now(), &call);
        let answer = Answer::read(&value, &[&question]).unwrap();
        let now = Timestamp::from_nanos(self.redis_now() * 1000);
        assert_eq!(answer.now, now);
        // Both sides of the protocol understand what is kept alike.
        let allowed = answer.states[0].state(&question, now).allows(now, Cost::new(cost));
        drop(question);
        if allowed != (answer.came == Came::Taken) {
            self.wrong = Some(format!("a script decided otherwise: {value:?}"));
        }
        if allowed {
            self.admit(None, cost);
        }
    }

    /// How many units could be taken now, by Redis.
    pub(in super::super) fn remaining(&self) -> u64 {
        let (question, call) = self.question_about(0);
        let value = self.server.run(self.redis_now(), &call);
        let answer = Answer::read(&value, &[&question]).unwrap();
        let status = answer.states[0].answer(&question, &self.scene.policy, answer.now, true);
        status.remaining()
    }
}
