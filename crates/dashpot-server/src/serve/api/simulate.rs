//! `POST /v1/simulate`: the simulator, for who tries limits out on the dashboard.

use std::time::Duration;

use dashpot::Quota;
use dashpot_simulate::{Setting, Traffic};
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::admin::admit;
use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json};
use crate::limit;
use crate::serve::metrics::Door;
use crate::serve::service::Shared;
use crate::serve::text::Text;
use crate::serve::wrong::Wrong;
use crate::simulate::{Choice, Contest, Simulated};

pub(crate) const ROUTE: Route = Route {
    method: Method::POST,
    path: "/v1/simulate",
    door: Door::Admin,
    handle: |service, call| Box::pin(simulate(service, call)),
    documented: || {
        Documented::new("What limits would do to traffic; limits nobody")
            .takes::<Simulating<'_>>()
            .gives::<Simulated>(200, "Figures, and a picture")
            .wrong(503, "Somebody else simulates")
            .with(openapi::limited())
            .admin()
    },
};

/// How many decisions a simulation may take: a service has others to answer.
const DECISIONS: f64 = 200_000.0;

/// How many limits and kinds of traffic there may be.
const PARTS: usize = 8;

/// What to simulate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Simulating<'a> {
    /// `steady 12/s`, `burst 50 every 10s`, `boundary`, `poisson 12/s` or `zipf 50/s callers 1000`; several are added together.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 8))]
    traffic: Vec<Text<'a>>,
    /// The limits, as in `10/10s burst 5`.
    #[serde(borrow)]
    #[schemars(length(min = 1, max = 8))]
    limits: Vec<Text<'a>>,
    /// Algorithms, or `all`; each limit's usual one if left out.
    #[serde(borrow, default)]
    #[schemars(length(max = 8))]
    algorithms: Vec<Text<'a>>,
    /// Places in a leaky bucket's queue.
    queue: Option<u64>,
    /// Places of the queue that proceed at once.
    undelayed: Option<u64>,
    /// How much time, as in `1min`; four windows if left out.
    #[serde(borrow, rename = "for")]
    length: Option<Text<'a>>,
    /// How long a request takes to serve: 100ms, unless it is said.
    #[serde(borrow)]
    takes: Option<Text<'a>>,
    /// The same seed makes the same traffic.
    seed: Option<u64>,
}

async fn simulate(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    let contest = contest(&call.json()?)?;
    let ready = contest.ready(None).map_err(|detail| Wrong::field("limits", detail))?;
    if ready.expected() > DECISIONS {
        let detail = format!(
            "about {:.0} decisions, and {DECISIONS:.0} is the most here; simulate less time, or use `dashpot simulate`",
            ready.expected()
        );
        return Err(Wrong::field("for", detail));
    }
    let Ok(_one) = service.simulating.try_lock() else {
        return Err(Wrong::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "somebody else simulates; try again",
        )
        .with(RETRY_AFTER, HeaderValue::from_static("1")));
    };
    // Others are answered meanwhile.
    let running = tokio::task::spawn_blocking(move || ready.run(|_| {}).with_picture());
    let simulated = running
        .await
        .map_err(|error| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    json(StatusCode::OK, &simulated)
}

fn contest(asked: &Simulating<'_>) -> Result<Contest, Wrong> {
    let read = |field: &str, text: &Option<Text<'_>>| match text {
        Some(text) => limit::time(text).map(Some).map_err(|detail| Wrong::field(field, detail)),
        None => Ok(None),
    };
    let usual = Setting::default();
    let length: Option<Duration> = read("for", &asked.length)?;
    let takes = read("takes", &asked.takes)?.unwrap_or(usual.takes);
    Ok(Contest {
        traffic: all::<Traffic>("traffic", &asked.traffic, 1)?,
        limits: all::<Quota>("limits", &asked.limits, 1)?,
        algorithms: all::<Choice>("algorithms", &asked.algorithms, 0)?,
        queue: asked.queue,
        undelayed: asked.undelayed,
        length,
        takes,
        seed: asked.seed.unwrap_or(usual.seed),
    })
}

/// Reads a list, and names the one that is wrong.
fn all<T: std::str::FromStr<Err: std::fmt::Display>>(
    field: &str,
    texts: &[Text<'_>],
    least: usize,
) -> Result<Vec<T>, Wrong> {
    if !(least..=PARTS).contains(&texts.len()) {
        return Err(Wrong::field(field, format!("{least} to {PARTS} of them")));
    }
    let read = |(number, text): (usize, &Text<'_>)| {
        text.parse()
            .map_err(|error: T::Err| Wrong::field(format!("{field}[{number}]"), error.to_string()))
    };
    texts.iter().enumerate().map(read).collect()
}
