#![no_main]

//! Access logs against rules: whatever strangers made servers write.

libfuzzer_sys::fuzz_target!(|data: &[u8]| dashpot_fuzz::logs::survives(data));
