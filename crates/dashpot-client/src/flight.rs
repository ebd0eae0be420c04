//! A call on its way, until its answer has been read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dashpot::Timestamp;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::chance::Chance;
use crate::learned::Takes;
use crate::told::Told;
use crate::traffic::{Hold, State, Traffic};
use crate::{Manners, Why};

/// A call on its way. Dropped, it has landed: its answer was read, or nobody wants it any more.
#[derive(Debug)]
pub(crate) struct Flight {
    traffic: Arc<Traffic>,
    takes: Takes,
    /// What had been answered when it was sent: all else may be counted after it.
    answered_before: Takes,
    sent_at: Timestamp,
    /// The number of the last hold by then.
    hold: u64,
    is_answered: bool,
}

/// Somebody was turned away: for how long, if that was told, and why.
pub(crate) type Denial = Option<(Duration, Why)>;

impl Flight {
    /// A call that has just gone.
    pub(crate) const fn new(
        traffic: Arc<Traffic>,
        takes: Takes,
        (answered_before, hold): (Takes, u64),
        sent_at: Timestamp,
    ) -> Self {
        Self { traffic, takes, answered_before, sent_at, hold, is_answered: false }
    }

    /// There is an answer: takes in what it tells of quotas, and that it was let in. Of what is not told in a good one
    /// nothing will be told.
    pub(crate) fn let_in(&mut self, told: &Told, is_good: bool, manners: &Manners, now: Timestamp) {
        self.is_answered = true;
        self.traffic.change(|state| {
            if is_good {
                state.learned.forget_untold(&told.allowances, self.sent_at);
            }
            self.learn(state, told, manners, now);
            // Who was sent before the last denial says nothing new.
            if self.hold == state.hold.number {
                state.hold.strikes = 0;
                state.hold.at_once = state.hold.at_once.map(|most| most.saturating_add(1));
            }
        });
    }

    /// There is an answer: the server turned it away, and nobody goes before that is over. Tells when that is.
    pub(crate) fn turned_away(
        &mut self,
        told: &Told,
        denial: Denial,
        manners: &Manners,
        now: Timestamp,
    ) -> Timestamp {
        self.is_answered = true;
        self.traffic.change_for_all(|state| {
            self.learn(state, told, manners, now);
            let is_new = self.hold == state.hold.number;
            let denial = denial.map(|(wait, why)| (wait.min(manners.longest()), why));
            state.hold.deny(is_new, denial, manners.chance(), now);
            state.hold.until
        })
    }

    fn learn(&self, state: &mut State, told: &Told, manners: &Manners, now: Timestamp) {
        let others = state.sent.since(self.answered_before).since(self.takes);
        let bounds = (manners.chance(), manners.longest());
        for allowance in &told.allowances {
            state.learned.learn(allowance, others, bounds, now);
        }
        state.answered(self.takes, self.hold);
    }
}

impl Hold {
    /// Somebody was turned away.
    fn deny(&mut self, is_new: bool, denial: Denial, chance: &Chance, now: Timestamp) {
        if is_new {
            self.number = self.number.wrapping_add(1);
            self.strikes = self.strikes.saturating_add(1);
            self.at_once = Some(1);
            self.unanswered = 0;
            self.extra = match denial {
                Some((wait, _)) => chance.spread(wait, self.strikes),
                None => chance.backoff(self.strikes),
            };
        }
        let (wait, why) = match denial {
            Some(told) => told,
            None if is_new => (Duration::ZERO, Why::Backoff),
            // It was turned away together with another, for which all wait.
            None => return,
        };
        let until = now.after(wait).after(self.extra);
        if until > self.until {
            self.until = until;
            self.why = Some(why);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.traffic.change(|state| {
            state.landed();
            if !self.is_answered {
                state.answered(self.takes, self.hold);
            }
        });
    }
}

pin_project! {
    /// The body of an answer. Until it has been read or dropped, the call is on its way.
    #[derive(Debug)]
    pub struct Answer<B> {
        #[pin]
        body: B,
        flight: Option<Flight>,
    }
}

impl<B: Body> Answer<B> {
    pub(crate) fn new(body: B, flight: Flight) -> Self {
        let flight = (!body.is_end_stream()).then_some(flight);
        Self { body, flight }
    }
}

impl<B: Body> Body for Answer<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(context));
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            *this.flight = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
