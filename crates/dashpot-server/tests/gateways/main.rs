//! Real gateways in front of `dashpot serve`, with the very configurations of docs/gateways and docs/envoy.md.
//!
//! Everything listens on loopback and dies with the test. `scripts/gateways` installs them; one that is
//! missing fails its tests.

mod app;
mod caddy;
mod client;
mod envoy;
mod facts;
mod gateway;
mod nginx;
mod page;
mod rate_limit;
mod scene;
#[path = "../support/service.rs"]
mod service;
#[path = "../support/tools.rs"]
mod tools;
mod traefik;
mod tried;
