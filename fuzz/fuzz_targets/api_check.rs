#![no_main]

//! Bodies of `POST /v1/check`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| dashpot_fuzz::api::survives(data));
