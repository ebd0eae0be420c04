//! All tests, in one program: each program costs a build of its own.

mod built;
mod faked_redis;
mod oracle_as_store;
mod proxy;
mod redis;
mod redis_cluster;
mod redis_sentinels;
mod replay;
mod vectors;
