#![no_main]

//! URLs of a store on Redis.

libfuzzer_sys::fuzz_target!(|text: &str| dashpot_fuzz::stored::survives(text));
