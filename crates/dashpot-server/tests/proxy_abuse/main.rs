//! `dashpot proxy` between callers and backends that are hostile, broken, slow or gone.

mod backend;
mod caller;
mod cases;
#[allow(dead_code, reason = "the service's own")]
#[path = "../running/client.rs"]
mod client;
mod echo;
mod frames;
mod gateway;
mod request;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/service.rs"]
mod service;
mod wire;

mod answers;
mod changes;
mod chunks;
mod codings;
mod crowd;
mod dying_backends;
mod dying_callers;
mod endless;
mod floods;
mod hanging_backends;
mod hosts;
mod http2;
mod lengths;
mod lines;
mod mutations;
mod pipelines;
mod queues;
mod silent;
mod slow;
mod stopping;
mod upgrades;
