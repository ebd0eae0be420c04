#![no_main]

//! Questions of gateways at `/v1/forward-auth`.

libfuzzer_sys::fuzz_target!(|data: &[u8]| dashpot_fuzz::forwarded::survives(data));
