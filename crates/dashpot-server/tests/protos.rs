//! `proto/descriptors.bin` is what reflection tells, made of the files beside it.

use std::path::Path;
use std::{env, fs};

/// To make it anew: `DASHPOT_UPDATE=1 cargo test -p dashpot-server --test protos`.
#[test]
fn what_reflection_tells_is_what_the_files_say() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    let files = ["envoy/service/ratelimit/v3/rls.proto"];
    let mut compiler = protox::Compiler::new([&home]).unwrap();
    compiler.include_imports(true).open_files(files).unwrap();
    let made = compiler.encode_file_descriptor_set();
    let kept = home.join("descriptors.bin");
    if env::var_os("DASHPOT_UPDATE").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    assert!(fs::read(&kept).unwrap() == made, "make proto/descriptors.bin anew");
}
