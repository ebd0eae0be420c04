//! A call runs through here, once: wait, send, listen, and perhaps again.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Percent, Timestamp};
use http::{HeaderMap, Response, StatusCode};

use crate::flight::Flight;
use crate::learned::Takes;
use crate::manners::Manners;
use crate::safety::{Meaning, Mishap, Worth, meaning};
use crate::told::Told;
use crate::traffic::{Caller, Traffic};
use crate::{Call, GaveUp, NotSent, Pace, Patience, Report, Tokens, Why};

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

    /// Ends the attempt before, so that it can be made once more. Tells whether it still can be.
    fn rewind(&mut self) -> bool;

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
    /// Of those who share a lane because there are too many.
    pace: Option<Pace>,
    takes: Takes,
    patience: Duration,
    /// Whether it may be made twice.
    is_safe: bool,
}

/// More tokens than anybody ever asks for, and few enough to be added up.
const MOST_TOKENS: u64 = 1 << 48;

/// Another attempt is worth it.
struct Again {
    /// Then it stands in line again.
    at: Timestamp,
    /// It will not be sent before.
    not_before: Timestamp,
    /// Whether that does no harm.
    is_safe: bool,
}

impl Manners {
    /// Looks at a call, before it is made.
    pub(crate) fn errand(&self, call: &Call<'_>) -> Errand {
        let patience = call.extensions.get::<Patience>().map_or(self.patience(), |own| own.0);
        let tokens = call.extensions.get::<Tokens>().map_or(0, |tokens| tokens.0.min(MOST_TOKENS));
        let (traffic, pace) = self.traffic(call, self.clock().now());
        let takes = Takes { requests: 1, tokens };
        Errand { traffic, pace, takes, patience, is_safe: self.may_repeat(call) }
    }

    /// Makes a call: waits for its turn, sends it, takes in what the answer tells, and makes it again if that is worth it
    /// and does no harm. The call is on its way until the flight is dropped.
    pub(crate) async fn run<E: Exchange>(
        &self,
        errand: Errand,
        exchange: &mut E,
    ) -> Result<(E::Answer, Flight, Report), Failure<E::Error>> {
        let mut report = Report::default();
        let Errand { traffic, pace, takes, patience, .. } = &errand;
        // Whoever makes a future and looks at it later begins to wait then.
        let deadline = self.clock().now().after(*patience);
        let pace = pace.as_ref().unwrap_or(&traffic.pace);
        let mut caller =
            Caller { ticket: None, takes: *takes, deadline, saves: self.share(), pace };
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
                Ok(answer) => self.after_answer(&errand, answer, &mut flight, report.attempts()),
                Err(error) => self.after_mishap::<E>(&errand, error, report.attempts()),
            };
            let next = next.and_then(|again| {
                self.may_go_again(&errand, again, deadline, report.attempts(), exchange)
            });
            match (next, outcome) {
                (Ok(at), outcome) => {
                    // The answer and its connection are free while this waits.
                    drop((outcome, flight));
                    self.pause(traffic, at, &mut report).await;
                }
                (Err(why), outcome) => {
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

    /// Takes in an answer. Tells whether another attempt is worth it; if not, perhaps why.
    fn after_answer<A: Heard>(
        &self,
        errand: &Errand,
        answer: &A,
        flight: &mut Flight,
        attempts: u32,
    ) -> Result<Again, Option<GaveUp>> {
        let now = self.clock().now();
        let told = Told::read(answer.headers(), now);
        let Meaning { is_turned_away, worth } = meaning(answer.status(), &told, self.statuses());
        let (mut at, mut not_before) = (now, now);
        if is_turned_away {
            // The whole lane waits, and this one in it.
            let said = told.retry_after.map(|wait| (wait, Why::RetryAfter));
            let said = said.or_else(|| Some((told.wait_for_empty()?, Why::Quota)));
            not_before = flight.turned_away(&told, said, self, now);
            tracing::info!(
                lane = &*errand.traffic.name,
                status = answer.status().as_u16(),
                wait = ?not_before.since(now),
                "the server turned a call away"
            );
        } else {
            flight.let_in(&told, worth == Worth::Nothing, self, now);
        }
        match worth {
            Worth::Nothing => return Err(None),
            Worth::NoPoint => return Err(Some(GaveUp::Told)),
            Worth::Again if not_before > now => {}
            // It failed; or it was turned away long after others who were sent with it, and nobody waits any more.
            Worth::Again => {
                at = now.after(self.chance().backoff(attempts));
                not_before = at;
            }
        }
        Ok(Again { at, not_before, is_safe: errand.is_safe })
    }

    fn after_mishap<E: Exchange>(
        &self,
        errand: &Errand,
        error: &E::Error,
        attempts: u32,
    ) -> Result<Again, Option<GaveUp>> {
        let is_safe = match self.judge(E::cause(error)).unwrap_or_else(|| E::judge(error)) {
            Mishap::Lasting => return Err(None),
            Mishap::Unknown => errand.is_safe,
            Mishap::Unsent => true,
        };
        let at = self.clock().now().after(self.chance().backoff(attempts));
        Ok(Again { at, not_before: at, is_safe })
    }

    /// Whether it may be made again, and when it stands in line then. If so, the attempt before is over.
    fn may_go_again<E: Exchange>(
        &self,
        errand: &Errand,
        again: Again,
        deadline: Timestamp,
        attempts: u32,
        exchange: &mut E,
    ) -> Result<Timestamp, Option<GaveUp>> {
        let why = if attempts >= self.attempts() {
            GaveUp::Attempts
        } else if !again.is_safe {
            GaveUp::Unsafe
        } else if !exchange.can_repeat() {
            GaveUp::Body
        } else if again.not_before > deadline {
            GaveUp::TooLate
        } else if !self.may_retry(&errand.traffic) {
            GaveUp::Budget
        } else if !exchange.rewind() {
            GaveUp::Body
        } else {
            return Ok(again.at);
        };
        Err(Some(why))
    }

    /// Takes a retry of the lane's budget, if there is one.
    fn may_retry(&self, traffic: &Traffic) -> bool {
        traffic.take_retry() || self.take_of_floor(traffic)
    }
}

fn not_sent(traffic: &Traffic, reason: NotSent, mut report: Report) -> Report {
    if report.attempts() > 0 && matches!(reason, NotSent::TooLate { .. }) {
        report.give_up(GaveUp::TooLate);
    }
    tracing::debug!(lane = &*traffic.name, %reason, "a call is not sent");
    report
}
