//! All tests but those that count allocations, in one program: each program costs a build of its own.

mod address;
mod bodies;
mod combining;
mod common;
mod concurrent;
mod facts;
mod failing_store;
mod headers;
mod keys;
mod layer;
mod live;
mod nested;
mod permits;
mod priorities;
mod proxies;
mod queues;
mod readers;
mod redis;
mod refusals;
mod responses;
mod rollout;
mod settling;
mod slow_bodies;
mod spoofing;
mod tokens;
mod ways_around;
