//! All tests, in one program: each program costs a build of its own.

mod cluster;
mod conformance;
mod differential;
mod faults;
mod found;
mod leases;
mod oracle;
mod processes;
mod sentinel;
mod servers;
mod support;
