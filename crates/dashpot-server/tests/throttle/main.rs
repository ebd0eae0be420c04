//! `CL.THROTTLE` over the Redis protocol: what it means, and that the clients people have can ask for it.
//!
//! `scripts/redis`, `scripts/gateways` and `scripts/readers` install the clients; without them these tests fail.

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/client.rs"]
mod client;
mod model;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../gateways/page.rs"]
mod page;
mod scene;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/service.rs"]
mod service;
#[path = "../support/tools.rs"]
mod tools;

mod benchmark;
mod cell;
mod cli;
mod command;
mod doors;
mod errors;
mod load;
mod node;
mod one_bucket;
mod otherwise;
mod python;
mod sequences;
mod snippets;
mod state;
mod store_down;
mod waits;
