#![no_main]

//! Reservations, as `POST /v1/settle` takes them from whoever brings one.

libfuzzer_sys::fuzz_target!(|data: &[u8]| dashpot_fuzz::reserved::survives(data));
