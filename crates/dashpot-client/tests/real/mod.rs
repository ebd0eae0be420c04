//! Real servers, real connections and real time.
//!
//! A machine may stand still for half a second at any moment: nothing here is about how soon something
//! happens, but all is about how early it must not.

mod express;
mod hyper;
mod nginx;
mod own_layer;
mod parser;
mod reqwest;
mod reqwest_errors;
mod server;
mod support;
