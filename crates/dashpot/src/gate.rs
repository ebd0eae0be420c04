//! So many at once, in this process: a gate, and the lines before it.
//!
//! Who waits asks, nobody grants: a place is taken in the poll that says so, by the first in line, so there is nothing to
//! give back when a future is dropped. Whoever makes room wakes the first one, and who has entered wakes the next if there
//! is room for that one, too.

mod builder;
mod enter;
mod lines;
mod rounds;
mod state;

#[cfg(all(test, any(dashpot_loom, dashpot_shuttle)))]
mod models;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

pub use builder::GateBuilder;
pub use enter::Enter;

use crate::memory::sync::Mutex;
use crate::{Class, Clock, Timestamp};
use state::State;

/// Lets so many in at once, and makes others wait or turns them away, the least important first. Clones are the same gate.
///
/// ```
/// use dashpot::{Class, Gate};
///
/// let gate = Gate::builder(2).places(0).build();
/// let one = gate.try_enter(Class::Normal)?;
/// let _other = gate.try_enter(Class::Normal)?;
/// assert!(gate.try_enter(Class::Normal).is_err());
/// drop(one);
/// assert!(gate.try_enter(Class::Normal).is_ok());
/// # Ok::<(), dashpot::Shed>(())
/// ```
///
/// With a [latency](GateBuilder::latency) to keep, the limit adapts: requests that begin within a tick are watched until each has
/// answered or had that time to. If clearly more than a tenth took longer, or too many failed, the limit is multiplied by
/// 0.9; else, if half of it was in use or it is lower than at first, it grows by one.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    // A lock, because who is in and who waits change together. It is held for some tens of nanoseconds.
    state: Mutex<State>,
}

/// Why somebody was turned away. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Shed {
    /// There is no room, and no place to wait in.
    #[error("there is no room, and no place to wait in; come back later")]
    Full,
    /// There was no room in time.
    #[error("there was no room in time; come back later")]
    TooLate,
    /// Somebody more important has taken the place in line.
    #[error("somebody more important has taken the place in line; come back later")]
    Displaced,
}

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateStatus {
    /// How many may be in at once, for now.
    pub limit: u64,
    /// How many are in.
    pub in_flight: u64,
    /// How many wait.
    pub waiting: u64,
}

impl Gate {
    /// Lets so many in at once, and as many wait for up to a second.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self::builder(limit).build()
    }

    /// The same, with more to say. At least one is let in.
    pub fn builder(limit: u64) -> GateBuilder {
        GateBuilder::new(limit)
    }

    fn with(settings: GateBuilder, clock: Arc<dyn Clock>) -> Self {
        let state = State::new(settings, clock.now());
        Self(Arc::new(Inner { clock, state: Mutex::new(state) }))
    }

    /// Enters, if there is room and nobody as important waits for it.
    ///
    /// # Errors
    /// If there is not.
    pub fn try_enter(&self, class: Class) -> Result<Pass, Shed> {
        let passed = self.change(|state, now| (!state.must_wait(class)).then(|| state.admit(now)));
        passed.map(|(round, began)| self.pass(round, began)).ok_or(Shed::Full)
    }

    /// Enters, or waits in line until there is room.
    ///
    /// # Errors
    /// If there is no place in line, somebody more important takes it, or there is no room in time. Counted from this call.
    pub fn enter(&self, class: Class) -> Enter {
        Enter::new(self.clone(), class)
    }

    /// Enters, whether there is room or not: for those who are never turned away, and take up room all the same.
    pub fn enter_anyway(&self) -> Pass {
        let (round, began) = self.change(|state, now| state.admit(now));
        self.pass(round, began)
    }

    /// Whether who comes now would be turned away at once: there is neither room nor a place in line.
    #[must_use]
    pub fn is_closed_to(&self, class: Class) -> bool {
        self.change(|state, _| state.must_wait(class) && !state.has_place(class))
    }

    /// How it stands.
    #[must_use]
    pub fn status(&self) -> GateStatus {
        self.change(|state, _| state.status())
    }

    /// Goes on by other settings, with those who are in and those who wait. A limit that has adapted stays, within its new bounds.
    pub fn adjust(&self, settings: GateBuilder) {
        self.change(|state, now| state.adjust(settings, now));
    }

    fn pass(&self, round: u64, began: Timestamp) -> Pass {
        Pass { gate: self.clone(), round, began, is_told: false }
    }

    /// Changes something, and wakes who has a reason to look again.
    fn change<R>(&self, change: impl FnOnce(&mut State, Timestamp) -> R) -> R {
        self.change_by(None, change)
    }

    /// The same by somebody who looks whether it is its turn.
    fn change_by<R>(
        &self,
        looks: Option<(Class, u64)>,
        change: impl FnOnce(&mut State, Timestamp) -> R,
    ) -> R {
        let now = self.0.clock.now();
        let mut state = self.0.state.lock();
        // Before, so that who comes belongs to the round that is under way; after, because it may have been what was waited for.
        state.turn(now);
        let late = state.expire(now, looks);
        let result = change(&mut state, now);
        state.turn(now);
        let next = state.take_next();
        drop(state);
        // Without the lock: a waker may run anything.
        late.into_iter().chain(next).for_each(Waker::wake);
        result
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gate").field(&self.status()).finish()
    }
}

/// Somebody who is in. Dropped, there is room for another: when the work is done, or is cancelled, or panics.
#[must_use = "a pass that is dropped is given back"]
pub struct Pass {
    gate: Gate,
    /// The round in which it began.
    round: u64,
    began: Timestamp,
    is_told: bool,
}

impl Pass {
    /// The answer begins, and it is a good one. How long that took is what a limit adapts to.
    pub fn succeeded(&mut self) {
        self.tell(true);
    }

    /// The work has failed.
    pub fn failed(&mut self) {
        self.tell(false);
    }

    /// What follows until it [restarts](Self::restart) is on somebody else's account: it waits there, and holds its place here.
    pub fn pause(&mut self) {
        let round = std::mem::take(&mut self.round);
        self.gate.change(|state, _| state.pause(round));
    }

    /// The work begins only now: what was waited for since it entered is on somebody else's account.
    pub fn restart(&mut self) {
        let round = self.round;
        (self.round, self.began) = self.gate.change(|state, now| state.restart(round, now));
    }

    fn tell(&mut self, is_good: bool) {
        if !self.is_told {
            self.is_told = true;
            let (round, began) = (self.round, self.began);
            self.gate.change(|state, now| state.answered(round, began, now, is_good));
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let (round, began, is_told) = (self.round, self.began, self.is_told);
        self.gate.change(|state, now| {
            match is_told {
                true => {}
                false if std::thread::panicking() => state.answered(round, began, now, false),
                false => state.abandoned(round, began, now),
            }
            state.leave();
        });
    }
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("began", &self.began).finish_non_exhaustive()
    }
}
