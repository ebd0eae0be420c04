//! What was found once by looking for trouble.

mod bodies;
mod denials;
mod lines;
mod quotas;
