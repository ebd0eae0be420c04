//! Under stress: a server of known capacity, by a clock of its own, behind the gate and behind limits that shrink. And
//! the lines at the gate, held to a slow model.

#[path = "overload/capacity.rs"]
mod capacity;
#[path = "overload/changes.rs"]
mod changes;
#[path = "overload/door.rs"]
mod door;
#[path = "overload/factor.rs"]
mod factor;
#[path = "overload/factor_rule.rs"]
mod factor_rule;
#[path = "overload/handed_out.rs"]
mod handed_out;
#[path = "overload/idle.rs"]
mod idle;
#[path = "overload/line_model.rs"]
mod line_model;
#[path = "overload/lines.rs"]
mod lines;
#[path = "overload/order.rs"]
mod order;
#[path = "overload/parts.rs"]
mod parts;
#[path = "overload/plots.rs"]
mod plots;
#[path = "overload/random.rs"]
mod random;
#[path = "overload/rounds.rs"]
mod rounds;
#[path = "overload/server.rs"]
mod server;
#[path = "overload/service.rs"]
mod service;
#[path = "overload/street.rs"]
mod street;
#[path = "overload/stuck.rs"]
mod stuck;

use std::time::Duration;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}
