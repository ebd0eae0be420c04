//! The Redis protocol as it goes over the wire: the real program beside the real redis-server, and those who do not
//! keep to the protocol.

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/client.rs"]
mod client;
mod redis;
mod reply;
mod scene;
#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../running/service.rs"]
mod service;

mod about;
mod browsers;
mod commands;
mod flags;
mod found;
mod hello;
mod hostile;
mod limits;
mod lines;
mod noise;
mod passwords;
mod pipelines;
mod protocol_errors;
mod secrets;
mod settings;
mod splits;
mod stopping;
mod timeouts;
mod tls;
mod unread;
