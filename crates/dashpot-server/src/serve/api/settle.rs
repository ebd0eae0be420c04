//! `POST /v1/settle`: this is what it cost.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    if !service.is_first(&taken).await.map_err(|error| failed(&error))? {
        return Err(Wrong::new(StatusCode::CONFLICT, "settled before"));
    }
    service.outstanding.forget(taken.id);
    let mut outcome = Ok(());
    for part in taken.parts(service.process) {
        let Some(reservation) = part.reservation() else { continue };
        let used = part.charge(settling.used);
        if service.settle(&reservation, part.local, used).await.is_err() {
            let detail =
                "the store does not answer; it stays charged, unless it was settled all the same";
            outcome = Err(Wrong::new(StatusCode::SERVICE_UNAVAILABLE, detail));
        }
    }
    outcome?;
    json(StatusCode::OK, &Settled { settled: true })
}

fn foreign() -> Wrong {
    let detail = "no such reservation; another instance takes it only if it has the same admin token and counts in the \
                  same place";
    Wrong::new(StatusCode::NOT_FOUND, detail)
}
