//! What a store on Redis promises while Redis, the network or its operators do their worst.

mod access;
mod admissions;
mod apart;
mod common;
mod deadline;
mod denials;
mod ending;
mod flush;
mod health;
mod keys;
mod load;
mod memory;
mod odd;
mod places;
mod recovery;
mod tls;
