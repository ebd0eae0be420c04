#![no_main]

//! What the gateway passes on: nothing that was said to it alone, and nobody else's word about who connected.

libfuzzer_sys::fuzz_target!(|data: &[u8]| dashpot_fuzz::proxied::survives(data));
