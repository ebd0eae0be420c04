#![no_main]

//! Files of envoyproxy/ratelimit.

libfuzzer_sys::fuzz_target!(|text: &str| dashpot_fuzz::envoy::survives_yaml(text));
