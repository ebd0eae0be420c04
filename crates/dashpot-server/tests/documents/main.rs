//! The README and the book: links lead somewhere, and whatever is shown is run.
//!
//! `ledger.rs` says for every fenced block of every page by which test; a block that nobody has thought of fails. Commands are
//! run by `shell/`, with other ports and with the program that was built for the tests.

mod book;
mod edge;
mod express;
mod ledger;
mod links;
mod mentions;
mod rule_files;
mod security;
#[path = "../support/service.rs"]
mod service;
mod shell;
mod shown;
mod summary;
