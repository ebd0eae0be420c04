//! The service, held to docs/api.md: the real program, asked over real sockets.
//!
//! Each test starts a server of its own on a free port of loopback, so none sees the counts of
//! another.

mod ad_hoc;
mod admin;
mod algorithms;
mod all_or_nothing;
mod by_rules;
mod fleet;
mod gateway_denials;
mod gateway_forgeries;
mod gateways;
mod headers;
mod health;
mod identity;
mod keys;
mod metrics;
mod openapi;
mod permits;
mod polite;
mod rules;
mod secrets;
mod settling;
mod simulating;
mod store_down;
mod support;
mod together;
mod waits;
mod watching;
mod wrong_checks;
mod wrong_http;
mod wrong_requests;
