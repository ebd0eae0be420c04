//! Waiting for one's turn.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dashpot::Timestamp;

use crate::flight::Flight;
use crate::manners::Manners;
use crate::traffic::{Caller, Step, Traffic};
use crate::{NotSent, Report, Why};

/// A place in line, left when it is dropped.
struct Place<'t> {
    traffic: &'t Traffic,
    /// None, if it has none.
    ticket: Option<u64>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.traffic.leave(ticket);
        }
    }
}

/// What is waited for, and since when.
struct Stopwatch<'r> {
    report: &'r mut Report,
    running: Option<(Why, Timestamp)>,
}

impl Stopwatch<'_> {
    fn next(&mut self, why: Option<Why>, now: Timestamp) {
        if let Some((why, since)) = self.running {
            self.report.wait(why, now.since(since));
        }
        self.running = why.map(|why| (why, now));
    }
}

impl Manners {
    /// Waits in line until this one may go. Dropping the future leaves the line: nothing was taken.
    pub(crate) async fn turn(
        &self,
        traffic: &Arc<Traffic>,
        caller: &mut Caller<'_>,
        report: &mut Report,
    ) -> Result<Flight, NotSent> {
        let (takes, deadline) = (caller.takes, caller.deadline);
        let mut place = Place { traffic, ticket: None };
        let mut watch = Stopwatch { report, running: None };
        let mut _alarm = None;
        let mut told = None;
        poll_fn(|context| {
            let (step, now) = match traffic.step(caller, self.terms(), context.waker()) {
                Ok(step) => step,
                Err(reason) => {
                    place.ticket = None;
                    return Poll::Ready(Err(reason));
                }
            };
            // At the deadline itself one may still go.
            let too_late = deadline.after(Duration::from_nanos(1));
            let (why, not_before, look_at) = match step {
                Step::Go { answered, hold } => {
                    place.ticket = None;
                    watch.next(None, now);
                    let before = (answered, hold);
                    return Poll::Ready(Ok(Flight::new(traffic.clone(), takes, before, now)));
                }
                Step::Late => {
                    place.ticket = None;
                    watch.next(None, now);
                    return Poll::Ready(Err(NotSent::TooLate { retry_after: None }));
                }
                Step::Wait(at, why) => (why, Some(at), at),
                Step::Until(why) => (why, None, too_late),
            };
            place.ticket = caller.ticket;
            watch.next(Some(why), now);
            if let Some(at) = not_before.filter(|at| *at > deadline) {
                let retry_after = Some(at.since(now));
                return Poll::Ready(Err(NotSent::TooLate { retry_after }));
            }
            if told != Some(why) {
                told = Some(why);
                let wait = not_before.map(|at| at.since(now));
                tracing::debug!(lane = &*traffic.name, why = why.as_str(), ?wait, "a call waits");
            }
            // The end of time never comes.
            _alarm =
                (look_at < Timestamp::MAX).then(|| self.clock().wake_at(look_at, context.waker()));
            Poll::Pending
        })
        .await
    }

    /// Waits until then.
    pub(crate) async fn sleep_until(&self, at: Timestamp) {
        let mut _alarm = None;
        poll_fn(|context| {
            if self.clock().now() >= at {
                return Poll::Ready(());
            }
            _alarm = Some(self.clock().wake_at(at, context.waker()));
            Poll::Pending
        })
        .await;
    }
}
