#![no_main]

//! Calls of Envoy's rate limit service: frames of gRPC, protobuf and JSON.

use dashpot_fuzz::envoy;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if data.first() == Some(&b'{') {
        envoy::survives_json(data);
    } else {
        envoy::survives_body(data);
    }
});
