//! What tests lean on: a world whose time is made, and servers in it.

#![allow(dead_code, reason = "not every test uses everything")]

mod clock;
mod server;
mod world;

pub(crate) use clock::WorldClock;
pub(crate) use server::{Arrival, Server, answer, get, post};
pub(crate) use world::World;

use std::time::Duration;

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
