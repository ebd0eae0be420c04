//! The dashboard, in a real browser: what it shows, what it does, for whom, and what it does not let in.

mod browser;
mod counts;
mod everybody;
mod keys;
mod playground;
mod policy;
mod scene;
#[path = "../support/service.rs"]
mod service;
mod store;
