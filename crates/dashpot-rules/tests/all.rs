//! All tests, in one program: each program costs a build of its own.

mod advice;
mod common;
mod consistency;
mod errors;
mod fuzz;
mod keys;
mod matching;
mod overload;
mod reference;
mod reload;
mod schema;
