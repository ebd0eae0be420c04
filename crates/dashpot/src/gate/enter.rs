//! Waiting before a gate.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Gate, Pass, Shed};
use crate::{Alarm, Class, Clock, Timestamp};

/// Enters a [`Gate`] when there is room. Dropped before, it leaves the line.
#[must_use = "nobody enters who does not wait"]
pub struct Enter {
    gate: Gate,
    class: Class,
    asked: Timestamp,
    /// The number in line, while this is in one.
    number: Option<u64>,
    alarm: Option<Alarm>,
}

impl Enter {
    pub(super) fn new(gate: Gate, class: Class) -> Self {
        let asked = gate.0.clock.now();
        Self { gate, class, asked, number: None, alarm: None }
    }

    /// Enters at once, or gets in line.
    fn begin(&mut self) -> Option<Result<Pass, Shed>> {
        let (class, asked) = (self.class, self.asked);
        let mut displaced = None;
        let begun = self.gate.change(|state, now| {
            if !state.must_wait(class) {
                return Ok(Ok(state.admit(now)));
            }
            if now >= state.deadline(asked) {
                return Err(Shed::TooLate);
            }
            let (number, whose) = state.join(class, asked).ok_or(Shed::Full)?;
            displaced = whose;
            Ok(Err(number))
        });
        if let Some(displaced) = displaced {
            displaced.wake();
        }
        match begun {
            Ok(Ok((round, began))) => Some(Ok(self.gate.pass(round, began))),
            Ok(Err(number)) => {
                self.number = Some(number);
                None
            }
            Err(shed) => Some(Err(shed)),
        }
    }

    /// Looks whether it is time, and leaves a waker if it is not.
    fn look(&mut self, number: u64, waker: &Waker) -> Poll<Result<Pass, Shed>> {
        let (class, asked) = (self.class, self.asked);
        // Cloned and dropped without the lock.
        let mut own = Some(waker.clone());
        let mut left = None;
        let mut again_at = None;
        let looked = self.gate.change_by(Some((class, number)), |state, now| {
            let deadline = state.deadline(asked);
            if !state.lines.holds(class, number) {
                let is_late = now >= deadline;
                return Poll::Ready(Err(if is_late { Shed::TooLate } else { Shed::Displaced }));
            }
            if state.is_next(class, number) {
                left = state.lines.remove(class, number);
                return Poll::Ready(Ok(state.admit(now)));
            }
            if now >= deadline {
                left = state.lines.remove(class, number);
                return Poll::Ready(Err(Shed::TooLate));
            }
            left = own.take().and_then(|own| state.lines.leave_waker(class, number, own));
            // The first in line sees to it that rounds are judged, if nobody else comes.
            let is_first = state.lines.first() == Some((class, number));
            if is_first {
                state.watches(class, number);
            }
            let turn = state.next_turn().filter(|at| is_first && *at > now);
            again_at = Some(turn.unwrap_or(deadline).min(deadline));
            Poll::Pending
        });
        drop(left);
        match looked {
            Poll::Ready(came) => {
                self.number = None;
                self.alarm = None;
                Poll::Ready(came.map(|(round, began)| self.gate.pass(round, began)))
            }
            Poll::Pending => {
                // After it has left its waker, or what happens in between would be slept through.
                let clock = &self.gate.0.clock;
                self.alarm = again_at.map(|at| clock.wake_at(at, waker));
                Poll::Pending
            }
        }
    }
}

impl Future for Enter {
    type Output = Result<Pass, Shed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let number = match self.number {
            Some(number) => number,
            None => match self.begin() {
                Some(came) => return Poll::Ready(came),
                None => self.number.unwrap_or_default(),
            },
        };
        self.look(number, context.waker())
    }
}

impl Drop for Enter {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let class = self.class;
            let waker = self.gate.change(|state, _| state.lines.remove(class, number));
            drop(waker);
        }
    }
}

impl fmt::Debug for Enter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enter").field("class", &self.class).finish_non_exhaustive()
    }
}
