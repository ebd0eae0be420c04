//! A call runs through here, once: wait, send, listen, and perhaps again.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use dashpot::{Percent, Timestamp};
use http::{HeaderMap, Response, StatusCode};

use crate::flight::Flight;
use crate::learned::Takes;
use crate::manners::Manners;
use crate::safety::{Meaning, Mishap, Worth, meaning};
use crate::told::Told;
use crate::traffic::{Caller, Traffic};
use crate::{Call, GaveUp, NotSent, Patience, Report, Tokens, Why};

/// A call that can be made, perhaps several times.
pub(crate) trait Exchange {
    /// What comes of it.
    type Answer: Heard;
    /// What else may come of it.
    type Error;

    /// Makes it.
    fn send(&mut self) -> impl Future<Output = Result<Self::Answer, Self::Error>> + Send;

    /// Whether it could be made once more.
    fn can_repeat(&self) -> bool;

    /// An error, as anybody may look at it.
    fn cause(error: &Self::Error) -> &(dyn Error + 'static);

    /// What becomes of it after such an error, unless somebody says otherwise.
    fn judge(error: &Self::Error) -> Mishap;
}

/// What came of a call that has no answer: [`CallError`], by the kind of error.
pub(crate) enum Failure<E> {
    NotSent(NotSent, Report),
    Failed(E, Report),
}

/// An answer, as far as manners are about it.
pub(crate) trait Heard {
    fn status(&self) -> StatusCode;
    fn headers(&self) -> &HeaderMap;
}

impl<B> Heard for Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

/// A call before it is made: where it stands, and what it may do.
pub(crate) struct Errand {
    traffic: Arc<Traffic>,
    takes: Takes,
    deadline: Timestamp,
    /// Whether it may be made twice.
    is_safe: bool,
}

/// What to do after an attempt.
enum Next {
    /// Once more, not before.
    Again(Timestamp),
    /// That was it.
    Done(Option<GaveUp>),
}

impl Manners {
    /// Looks at a call, before it is made.
    pub(crate) fn errand(&self, call: &Call<'_>) -> Errand {
        let now = self.clock().now();
        let patience = call.extensions.get::<Patience>().map_or(self.patience(), |own| own.0);
        let tokens = call.extensions.get::<Tokens>().map_or(0, |tokens| tokens.0);
        Errand {
            traffic: self.traffic(call, now),
            takes: Takes { requests: 1, tokens },
            deadline: now.after(patience),
            is_safe: self.may_repeat(call),
        }
    }

    /// Makes a call: waits for its turn, sends it, takes in what the answer tells, and makes it again if that is worth it
    /// and does no harm. The call is on its way until the flight is dropped.
    pub(crate) async fn run<E: Exchange>(
        &self,
        errand: Errand,
        exchange: &mut E,
    ) -> Result<(E::Answer, Flight, Report), Failure<E::Error>> {
        let mut report = Report::default();
        let Errand { traffic, takes, deadline, .. } = &errand;
        let (takes, deadline) = (*takes, *deadline);
        let mut caller = Caller { ticket: None, takes, deadline, saves: self.share() };
        loop {
            let mut flight = match self.turn(traffic, &mut caller, &mut report).await {
                Ok(flight) => flight,
                Err(reason) => {
                    return Err(Failure::NotSent(reason, not_sent(traffic, reason, report)));
                }
            };
            caller.saves = Percent::default();
            report.sent();
            let outcome = exchange.send().await;
            report.answered(outcome.as_ref().ok().map(Heard::status));
            let next = match &outcome {
                Ok(answer) => self.after_answer(&errand, answer, &mut flight, &report, exchange),
                Err(error) => self.after_mishap(&errand, error, &report, exchange),
            };
            match (next, outcome) {
                (Next::Again(at), outcome) => {
                    // The answer and its connection are free while this waits.
                    drop((outcome, flight));
                    self.pause(traffic, at, &mut report).await;
                }
                (Next::Done(why), outcome) => {
                    why.into_iter().for_each(|why| report.give_up(why));
                    return match outcome {
                        Ok(answer) => Ok((answer, flight, report)),
                        Err(error) => Err(Failure::Failed(error, report)),
                    };
                }
            }
        }
    }

    /// Waits before the next attempt.
    async fn pause(&self, traffic: &Traffic, at: Timestamp, report: &mut Report) {
        let now = self.clock().now();
        tracing::debug!(
            lane = &*traffic.name,
            attempt = report.attempts(),
            status = report.last_status().map(|status| status.as_u16()),
            wait = ?at.since(now),
            "a call is made again"
        );
        if at > now {
            self.sleep_until(at).await;
            report.wait(Why::Backoff, self.clock().now().since(now));
        }
    }

    fn after_answer<E: Exchange>(
        &self,
        errand: &Errand,
        answer: &E::Answer,
        flight: &mut Flight,
        report: &Report,
        exchange: &E,
    ) -> Next {
        let now = self.clock().now();
        let told = Told::read(answer.headers(), now);
        let Meaning { is_turned_away, worth } = meaning(answer.status(), &told, self.statuses());
        flight.answered(&told, !is_turned_away, self.chance(), now);
        // The whole lane waits, and this one in it.
        let held_until = is_turned_away.then(|| {
            let said = told.retry_after.map(|wait| (wait, Why::RetryAfter));
            let said = said.or_else(|| Some((told.wait_for_empty()?, Why::Quota)));
            let until = flight.turned_away(said, self.longest(), self.chance(), now);
            tracing::info!(
                lane = &*errand.traffic.name,
                status = answer.status().as_u16(),
                wait = ?until.since(now),
                "the server turned a call away"
            );
            until
        });
        match (worth, held_until) {
            (Worth::Nothing, _) => Next::Done(None),
            (Worth::NoPoint, _) => Next::Done(Some(GaveUp::Told)),
            (Worth::Again, Some(until)) => {
                self.again(errand, errand.is_safe, (now, until), report, exchange)
            }
            (Worth::Again, None) => {
                let at = now.after(self.chance().backoff(report.attempts()));
                self.again(errand, errand.is_safe, (at, at), report, exchange)
            }
        }
    }

    fn after_mishap<E: Exchange>(
        &self,
        errand: &Errand,
        error: &E::Error,
        report: &Report,
        exchange: &E,
    ) -> Next {
        let is_safe = match self.judge(E::cause(error)).unwrap_or_else(|| E::judge(error)) {
            Mishap::Lasting => return Next::Done(None),
            Mishap::Unknown => errand.is_safe,
            Mishap::Unsent => true,
        };
        let at = self.clock().now().after(self.chance().backoff(report.attempts()));
        self.again(errand, is_safe, (at, at), report, exchange)
    }

    /// Once more at a moment, if it may; it will not be sent before the second moment.
    fn again<E: Exchange>(
        &self,
        errand: &Errand,
        is_safe: bool,
        (at, not_before): (Timestamp, Timestamp),
        report: &Report,
        exchange: &E,
    ) -> Next {
        let why = if report.attempts() >= self.attempts() {
            GaveUp::Attempts
        } else if !is_safe {
            GaveUp::Unsafe
        } else if !exchange.can_repeat() {
            GaveUp::Body
        } else if not_before > errand.deadline {
            GaveUp::TooLate
        } else if !self.may_retry(&errand.traffic) {
            GaveUp::Budget
        } else {
            return Next::Again(at);
        };
        Next::Done(Some(why))
    }

    /// Takes a retry of the lane's budget, if there is one.
    fn may_retry(&self, traffic: &Traffic) -> bool {
        traffic.change(|state| state.budget.take()) || self.take_of_floor(traffic)
    }
}

fn not_sent(traffic: &Traffic, reason: NotSent, mut report: Report) -> Report {
    if report.attempts() > 0 {
        report.give_up(GaveUp::TooLate);
    }
    tracing::debug!(lane = &*traffic.name, %reason, "a call is not sent");
    report
}
