//! The gateway on the wire: the real program between a caller and a backend, both of which look at every byte.

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/client.rs"]
mod client;
mod message;
mod multiplexed;
mod scene;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/service.rs"]
mod service;
mod wire;

mod answers;
mod connections;
mod early;
mod expectations;
mod hop_by_hop;
mod hosts;
mod max_body;
mod old_http;
mod own_answers;
mod pipelines;
mod refused;
mod requests;
mod retries;
mod settings;
mod standing_still;
mod stopping;
mod streaming;
mod streams;
mod timeouts;
mod tls;
mod trailers;
mod trusted;
mod tunnels;
mod unread;
mod upgrades;
mod who_asked;
mod wrong_settings;
