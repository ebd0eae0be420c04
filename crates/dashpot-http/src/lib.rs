//! dashpot for HTTP.
