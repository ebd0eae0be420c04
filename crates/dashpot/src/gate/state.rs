//! Who is in, who waits, and how many may be in.

use std::task::Waker;

use super::lines::Lines;
use super::rounds::Round;
use super::{GateBuilder, GateStatus};
use crate::{Class, Timestamp};

#[derive(Debug)]
pub(super) struct State {
    settings: GateBuilder,
    limit: u64,
    in_flight: u64,
    pub(super) lines: Lines,
    round: Round,
    /// Who sees to it that rounds are judged, if nobody else comes.
    watcher: Option<(Class, u64)>,
}

impl State {
    pub(super) fn new(settings: GateBuilder, now: Timestamp) -> Self {
        let limit = settings.limit;
        let round = Round::new(1, now, 0);
        let lines = Lines::default();
        let mut state = Self { settings, limit, in_flight: 0, lines, round, watcher: None };
        state.bound();
        state
    }

    /// Keeps the limit within its bounds.
    fn bound(&mut self) {
        let GateBuilder { limit, latency, min, max, .. } = self.settings;
        self.limit = match latency {
            None => limit,
            Some(_) => self.limit.min(max).max(min),
        };
    }

    pub(super) fn adjust(&mut self, settings: GateBuilder, now: Timestamp) {
        // One that has not adapted yet starts where it is told to.
        if self.settings.latency.is_none() {
            self.limit = settings.limit;
        }
        self.settings = settings;
        self.bound();
        self.round = Round::new(self.round.number + 1, now, self.in_flight);
    }

    pub(super) fn status(&self) -> GateStatus {
        let Self { limit, in_flight, ref lines, .. } = *self;
        GateStatus { limit, in_flight, waiting: lines.len() }
    }

    /// Until when who came then may wait.
    pub(super) fn deadline(&self, asked: Timestamp) -> Timestamp {
        asked.after(self.settings.wait)
    }

    /// Sends those away who are too late and do not look, but for one who does right now.
    pub(super) fn expire(&mut self, now: Timestamp, looks: Option<(Class, u64)>) -> Vec<Waker> {
        self.lines.expire(now, self.settings.wait, looks)
    }

    /// When there may be more room without anybody leaving.
    pub(super) fn next_turn(&self) -> Option<Timestamp> {
        Some(self.round.next_turn(self.settings.latency?, &self.settings))
    }

    fn has_room(&self, class: Class) -> bool {
        self.in_flight < self.settings.part_of(class, self.limit)
    }

    /// Whether who comes now has to wait, for room or for others.
    pub(super) fn must_wait(&self, class: Class) -> bool {
        !self.has_room(class) || self.lines.are_ahead_of(class)
    }

    /// Whether there is a place in line, be it that of somebody less important.
    pub(super) fn has_place(&self, class: Class) -> bool {
        let is_free = self.lines.len() < self.settings.places;
        is_free || self.lines.displaceable_by(class).is_some()
    }

    /// Gets in line. Gives the number, and the waker of who had to leave for it.
    pub(super) fn join(&mut self, class: Class, asked: Timestamp) -> Option<(u64, Option<Waker>)> {
        let mut displaced = None;
        if self.lines.len() >= self.settings.places {
            let lower = self.lines.displaceable_by(class)?;
            displaced = self.lines.displace(lower);
        }
        Some((self.lines.join(class, asked), displaced))
    }

    /// Whether it is the turn of somebody in line.
    pub(super) fn is_next(&self, class: Class, number: u64) -> bool {
        self.has_room(class) && self.lines.first() == Some((class, number))
    }

    /// Lets somebody in. Tells the round it belongs to, and when it began.
    pub(super) fn admit(&mut self, now: Timestamp) -> (u64, Timestamp) {
        self.in_flight += 1;
        (self.round.begin(self.in_flight, now), now)
    }

    /// Somebody who is in is not watched from now on.
    pub(super) const fn pause(&mut self, round: u64) {
        if round == self.round.number {
            self.round.abandoned();
        }
    }

    /// Begins anew for somebody who is in.
    pub(super) fn restart(&mut self, round: u64, now: Timestamp) -> (u64, Timestamp) {
        self.pause(round);
        (self.round.begin(self.in_flight, now), now)
    }

    pub(super) const fn leave(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn answered(&mut self, round: u64, began: Timestamp, now: Timestamp, is_good: bool) {
        if round == self.round.number {
            let is_in_time = self.is_in_time(began, now);
            self.round.answered(is_in_time, is_good);
        }
    }

    /// Somebody left without a word. Who had waited too long for an answer tells all the same.
    pub(super) fn abandoned(&mut self, round: u64, began: Timestamp, now: Timestamp) {
        match self.is_in_time(began, now) {
            _ if round != self.round.number => {}
            true => self.round.abandoned(),
            false => self.round.answered(false, true),
        }
    }

    fn is_in_time(&self, began: Timestamp, now: Timestamp) -> bool {
        self.settings.latency.is_none_or(|latency| now.since(began) <= latency)
    }

    /// Goes on to the next round, if this one is over.
    pub(super) fn turn(&mut self, now: Timestamp) {
        let Some(latency) = self.settings.latency else { return };
        if let Some(limit) = self.round.judge(now, self.limit, latency, &self.settings) {
            self.limit = limit;
            self.round = Round::new(self.round.number + 1, now, self.in_flight);
        }
    }

    /// The waker of who is next, if there is room. It looks, and wakes the one after it.
    pub(super) fn take_next(&mut self) -> Option<Waker> {
        let (class, number) = self.lines.first()?;
        // Who has become the first is to watch the rounds.
        let is_new = self.settings.latency.is_some() && self.watcher != Some((class, number));
        let has_reason = is_new || self.has_room(class);
        if has_reason { self.lines.take_waker(class, number) } else { None }
    }

    /// The first in line has set its alarm by the rounds.
    pub(super) const fn watches(&mut self, class: Class, number: u64) {
        self.watcher = Some((class, number));
    }
}
