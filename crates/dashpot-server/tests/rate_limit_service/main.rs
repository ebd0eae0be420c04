//! Envoy's rate limit service: `dashpot serve`, asked by grpcio with Envoy's own messages, and over HTTP at `/json`.
//!
//! `scripts/gateways` installs what `client.py` needs; without it these tests fail.

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/client.rs"]
mod client;
mod door;
mod rpc;
mod scene;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/service.rs"]
mod service;
#[path = "../support/tools.rs"]
mod tools;

mod algorithms;
mod by_rules;
mod concurrency;
mod costs;
mod count_denied;
mod examples;
mod examples_of_values;
mod facts;
mod flags;
mod found;
mod give_back;
mod headers;
mod health;
mod keys;
mod load_errors;
mod loading;
mod matching;
mod metrics;
mod overrides;
mod reflection;
mod reload;
mod replaces;
mod spelling;
mod store_down;
mod together;
mod units;
mod wire;
mod wrong_requests;
