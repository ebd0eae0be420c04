//! The simulator: held to the oracle, and to what pictures are to show.

mod facts;
mod oracle;
mod pictures;
mod traffic;
