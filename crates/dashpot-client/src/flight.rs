//! A call on its way, until its answer has been read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dashpot::Timestamp;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::Why;
use crate::chance::Chance;
use crate::learned::Takes;
use crate::told::Told;
use crate::traffic::Traffic;

/// A call on its way. Dropped, it has landed: its answer was read, or nobody wants it any more.
#[derive(Debug)]
pub(crate) struct Flight {
    traffic: Arc<Traffic>,
    takes: Takes,
    /// What had been answered when it was sent: all else may be counted after it.
    answered_before: Takes,
    sent_at: Timestamp,
    is_answered: bool,
}

impl Flight {
    /// A call that has just gone.
    pub(crate) const fn new(
        traffic: Arc<Traffic>,
        takes: Takes,
        answered_before: Takes,
        sent_at: Timestamp,
    ) -> Self {
        Self { traffic, takes, answered_before, sent_at, is_answered: false }
    }

    /// There is an answer: takes in what it tells of quotas, and whether it was let in.
    pub(crate) fn answered(
        &mut self,
        told: &Told,
        was_let_in: bool,
        chance: &Chance,
        now: Timestamp,
    ) {
        self.traffic.change(|state| {
            let others = state.sent.since(self.answered_before).since(self.takes);
            for allowance in &told.allowances {
                state.learned.learn(allowance, others, chance, now);
            }
            state.answered.add(self.takes);
            // Who was sent before the last denial says nothing new.
            if was_let_in && self.sent_at >= state.hold.since {
                state.hold.strikes = 0;
                state.hold.at_once = state.hold.at_once.map(|most| most.saturating_add(1));
            }
        });
        self.is_answered = true;
    }

    /// The server turned it away: nobody goes before this is over. Tells when that is.
    pub(crate) fn turned_away(
        &self,
        wait: Option<(Duration, Why)>,
        longest: Duration,
        chance: &Chance,
        now: Timestamp,
    ) -> Timestamp {
        self.traffic.change_for_all(|state| {
            let hold = &mut state.hold;
            let wait = wait.map(|(wait, why)| (wait.min(longest), why));
            let is_new = self.sent_at >= hold.since;
            if is_new {
                hold.strikes = hold.strikes.saturating_add(1);
                hold.since = now;
                hold.at_once = Some(1);
                hold.extra = match wait {
                    Some((wait, _)) => chance.spread(wait, hold.strikes),
                    None => chance.backoff(hold.strikes),
                };
            }
            let (wait, why) = match wait {
                Some(told) => told,
                None if is_new => (Duration::ZERO, Why::Backoff),
                None => return hold.until,
            };
            let until = now.after(wait).after(hold.extra);
            if until > hold.until {
                hold.until = until;
                hold.why = Some(why);
            }
            hold.until
        })
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.traffic.change(|state| {
            state.landed();
            if !self.is_answered {
                state.answered.add(self.takes);
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
