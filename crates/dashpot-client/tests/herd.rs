//! Many clients at one server.
