//! All tests in one program: each program costs a build of its own.

mod common;
mod found;
mod herd;
mod promises;
mod real;
mod told;
mod waiting;
