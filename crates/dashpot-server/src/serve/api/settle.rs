//! `POST /v1/settle`: this is what it cost.

use dashpot::{Check, Key, Store};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::check::failed;
use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::serve::metrics::Door;
use crate::serve::reservation::{Taken, Unknown};
use crate::serve::service::Shared;
use crate::serve::text::Text;
use crate::serve::wrong::Wrong;

pub(crate) const ROUTE: Route = Route {
    method: Method::POST,
    path: "/v1/settle",
    door: Door::Settle,
    handle: |service, call| Box::pin(answer(service, call)),
    documented: || {
        Documented::new("Charge what it really cost; 0 gives all back. Releases permits")
            .takes::<Settling<'_>>()
            .gives::<Settled>(200, "Settled")
            .wrong(404, "None of ours")
            .wrong(409, "Settled before")
            .wrong(410, "Too late")
            .wrong(503, "The store does not answer; it stays charged")
            .with(openapi::limited())
    },
};

/// What something really cost.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Settling<'a> {
    /// As it was given with the answer.
    #[serde(borrow)]
    reservation: Text<'a>,
    /// How many units were used.
    used: u64,
}

/// It is settled.
#[derive(Debug, Serialize, JsonSchema)]
struct Settled {
    settled: bool,
}

async fn answer(service: &Shared, call: &Call) -> Answered {
    let settling: Settling<'_> = call.json()?;
    let taken =
        Taken::open(&settling.reservation, &service.secret).map_err(|unknown| match unknown {
            Unknown::Foreign => foreign(),
            Unknown::Late => Wrong::new(
                StatusCode::GONE,
                "too late: what was reserved stays charged, permits were given back",
            ),
        })?;
    if taken.parts(service.process).next().is_none() {
        return Err(foreign());
    }
    // Before it is tried: a store that fails may have done it all the same, and nothing is given back twice.
    if !is_first(service, &taken).await? {
        return Err(Wrong::new(StatusCode::CONFLICT, "settled before"));
    }
    service.outstanding.forget(taken.id);
    let mut outcome = Ok(());
    for part in taken.parts(service.process) {
        let Some(reservation) = part.reservation() else { continue };
        let used = part.charge(settling.used);
        if part.local {
            service.local.settle_now(&reservation, used);
        } else if let Err(error) = service.store.settle(&reservation, used).await {
            debug!(%error, "could not settle");
            let detail =
                "the store does not answer; it stays charged, unless it was settled all the same";
            outcome = Err(Wrong::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    }
    outcome?;
    json(StatusCode::OK, &Settled { settled: true })
}

/// Whether nobody has settled it before, here or elsewhere: the store lets each pass once.
async fn is_first(service: &Shared, taken: &Taken) -> Result<bool, Wrong> {
    let id = taken.id.to_be_bytes();
    let once = [Check::new(&service.once, Key::new(&id))];
    if taken.is_local() {
        return Ok(service.local.decide_now(&once).is_allowed());
    }
    let decided = service.store.decide(&once).await;
    decided.map(|decision| decision.is_allowed()).map_err(|error| failed(&error))
}

fn foreign() -> Wrong {
    let detail = "no such reservation; another instance takes it only if it has the same admin token and counts in the \
                  same place";
    Wrong::new(StatusCode::NOT_FOUND, detail)
}
