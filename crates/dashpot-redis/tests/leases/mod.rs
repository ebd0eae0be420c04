//! What leases promise, seen from outside: several instances, one limit, and few questions.

mod approximate;
mod bound;
mod callers;
mod changes;
mod common;
mod crowd;
mod few;
mod giving;
mod managing;
mod outage;
mod places;
mod processes;
mod settling;
mod sharing;
mod together;
mod waits;
