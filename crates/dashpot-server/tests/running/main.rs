//! The service as it runs: the real program, asked over real connections, stopped by real signals.

mod client;
mod service;

mod broken_rules;
mod exact;
mod flags;
mod found;
mod greedy;
mod idle;
mod leased;
mod malformed;
mod overload;
mod redis;
mod reload;
mod shutdown;
mod slow;
mod smuggling;
mod start;
mod state;
mod surroundings;
mod tls;
mod well_formed;
