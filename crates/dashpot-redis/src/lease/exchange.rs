//! What goes between a slot and Redis.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dashpot::{Consistency, Policy, Timestamp};
use redis::{Cmd, Value};
use tokio::time::Instant;

use super::slot::{Reply, Request, Slot, Ways};
use crate::failure::Failure;
use crate::question::{self, Deed, Question, Settling, Span};
use crate::recall::{Answer, Came, Leased, head};
use crate::script;
use crate::store::{GUESSES, Inner};

/// How many offers are made at most.
const OFFERS: u32 = 8;

impl Inner {
    /// Asks for more for a slot, having the right to; somebody waits for so many units.
    pub(crate) fn begin_to_ask(self: &Arc<Self>, slot: &Arc<Slot>, units: u64) {
        let request = slot.request(self.leases.now(), units, self.instances.count().get());
        let (inner, slot) = (self.clone(), slot.clone());
        // A task of its own, because whoever asked may not wait for the answer.
        self.leases.runtime.spawn(async move {
            let deadline = inner.deadline();
            inner.exchange(&slot, request, deadline).await;
        });
    }

    /// Asks, and lets the slot know what was answered.
    pub(crate) async fn exchange(&self, slot: &Slot, request: Request, deadline: Instant) {
        self.leases.calls.fetch_add(1, Ordering::Relaxed);
        let answer = match slot.policy.consistency() {
            Consistency::Approximate => self.tell(slot, &request, deadline).await,
            Consistency::Exact | Consistency::Leased => self.lease(slot, &request, deadline).await,
        };
        let now = self.leases.now();
        match answer {
            Ok(reply) => slot.hear(&request, now, reply),
            Err(failure) => slot.fail(now, failure),
        }
    }

    async fn lease(
        &self,
        slot: &Slot,
        request: &Request,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let lasts = self.leases.ways.lease;
        for _ in 0..GUESSES {
            let call = lease_call(slot, request, lasts, self.around());
            let value = self.topology.call(slot.spot, &call, deadline).await?;
            match read_lease(slot, request, lasts, &value)? {
                Some(reply) => return Ok(reply),
                None => {
                    let (now, ..) = head(&value).ok_or(Failure::Odd("the answer of a script"))?;
                    self.learn(now);
                }
            }
        }
        Err(Failure::Odd("the server's clock jumps about"))
    }

    /// Tells what was counted here, and hears how the key stands.
    async fn tell(
        &self,
        slot: &Slot,
        request: &Request,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        if request.spent > 0 {
            let (policy, deed, units) = (&slot.policy, Deed::Charge, request.spent);
            let what = Settling { policy, deed, charged_at: self.around(), units };
            self.settle_units(&slot.name, &what, None, deadline).await?;
            // It is not told again, whatever becomes of the rest.
            slot.told(request.spent);
        }
        let deadline = self.deadline();
        let question = Question { key: slot.name.clone(), ..slot.question(0) };
        let answer = self.ask(slot.spot, &[&question], false, deadline).await?;
        read_look(slot, &self.leases.ways, answer)
    }
}

/// The answer to a look at a key that is counted here: of what is left, so much may be granted before it is told.
pub(super) fn read_look(slot: &Slot, ways: &Ways, answer: Answer) -> Result<Reply, Failure> {
    let recalled = answer.states.into_iter().next();
    let recalled = recalled.ok_or(Failure::Odd("the answer of a script"))?;
    let seen = recalled.answer(&slot.question(0), &slot.policy, answer.now, false).remaining();
    let (quantum, lasts) = (slot.quantum(ways), 2 * ways.interval);
    let (units, is_short) = (seen.min(quantum), seen < quantum);
    let (at, is_known, is_cut) = (answer.now, true, false);
    Ok(Reply { at, recalled, is_known, units, is_short, lasts, is_cut })
}

/// The call for a lease.
pub(super) fn lease_call(
    slot: &Slot,
    request: &Request,
    lasts: Duration,
    around: Timestamp,
) -> Cmd {
    let policy = &slot.policy;
    let letter = question::letter(policy);
    let rate = policy.rate().filter(|_| letter == "b");
    let mut call = script::LEASE.call(std::iter::once(slot.name.as_slice()));
    call.arg(&slot.holder).arg(lasts.as_micros().to_string()).arg(letter);
    match rate {
        Some(rate) => call.arg(format!("{}:{}", rate.units, rate.nanos)),
        None => call.arg(question::length(policy)),
    };
    for units in [request.kept, request.spent] {
        call.arg(units);
        match rate {
            Some(rate) => {
                let span = Span::of(policy.grains(units), rate);
                call.arg(span.micros).arg(span.grains);
            }
            None => drop(call.arg(0).arg(0)),
        }
    }
    let offers = offers(request, policy);
    call.arg(offers.len()).arg(request.number);
    for units in offers {
        // Who does not wait for them leaves as much to each of the others.
        let others = if units > request.need { request.instances.saturating_sub(1) } else { 0 };
        call.arg(units);
        let besides = units.saturating_mul(others);
        slot.question(units).ask((units, besides), around, 0, &mut call);
    }
    call
}

/// What would do, the most welcome first.
fn offers(request: &Request, policy: &Policy) -> Vec<u64> {
    let most = request.want.min(policy.limit());
    let least = request.need.max(1);
    // As many times less each time that the last is not far from the least.
    let step = (most / least).checked_ilog2().unwrap_or(0) / OFFERS + 1;
    let smaller = (0..OFFERS).map(|times| most >> (times * step));
    let mut offers: Vec<u64> = smaller.take_while(|&units| units > least).collect();
    if request.want > 0 && least <= policy.limit() {
        offers.push(least);
    }
    offers
}

/// The answer to a call for a lease; `None` if the calendar is to be looked at again.
pub(super) fn read_lease(
    slot: &Slot,
    request: &Request,
    wanted: Duration,
    value: &Value,
) -> Result<Option<Reply>, Failure> {
    let (at, came, rest) = head(value).ok_or(Failure::Odd("the answer of a script"))?;
    if came == Came::Elsewhen {
        return Ok(None);
    }
    let read =
        Leased::read(&slot.question(0), rest).ok_or(Failure::Odd("the answer of a script"))?;
    let Leased { recalled, lasts, is_known, units } = read;
    let (is_short, is_cut) = (units < request.want, lasts < wanted);
    Ok(Some(Reply { at, recalled, is_known, units, is_short, lasts, is_cut }))
}
