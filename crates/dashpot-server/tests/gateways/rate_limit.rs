//! Envoy, by its filter `ratelimit` over gRPC, with what docs/envoy.md shows.

mod descriptors;
mod draining;
mod edge;
mod failures;
mod hits;
mod plan;
mod reload;
mod shown;
mod store;
mod store_down;
mod tls;
