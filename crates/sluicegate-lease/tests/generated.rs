//! The code for gRPC is what the generator makes of the proto file.
#![cfg(feature = "grpc")]

use std::path::Path;
use std::{env, fs};

/// With `UPDATE_GENERATED=1`, the file is written anew.
#[test]
fn the_generated_code_is_that_of_the_proto_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tempfile::tempdir().unwrap();
    let files = protox::compile(["capacity.proto"], [root.join("proto")]).unwrap();
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .out_dir(target.path())
        .compile_fds(files)
        .unwrap();
    let made = fs::read_to_string(target.path().join("doorman.rs")).unwrap();
    let kept = root.join("src/grpc/generated.rs");
    if env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    // Not `assert_eq`, which would print both.
    assert!(fs::read_to_string(kept).unwrap() == made, "run this with UPDATE_GENERATED=1");
}
