//! The code for gRPC is what the generator makes of the proto file.
#![cfg(feature = "grpc")]

use std::path::Path;
use std::{env, fs};

#[test]
fn the_generated_code_is_that_of_the_proto_file() {
    check("capacity.proto", "doorman.rs", "src/grpc/generated.rs", true);
}

#[test]
fn the_generated_code_for_etcd_is_that_of_its_proto_file() {
    check("etcd.proto", "etcdserverpb.rs", "src/etcd/generated.rs", false);
}

#[test]
fn the_descriptors_are_those_of_the_proto_file() {
    use prost::Message;

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = protox::compile(["capacity.proto"], [root.join("proto")]).unwrap();
    // Comments and places of the text are of no use to programs.
    files.file.iter_mut().for_each(|file| file.source_code_info = None);
    let kept = root.join("src/grpc/capacity.bin");
    if env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&kept, files.encode_to_vec()).unwrap();
    }
    let is_same = sluicegate_lease::CAPACITY_DESCRIPTORS == files.encode_to_vec();
    assert!(is_same, "run this with UPDATE_GENERATED=1");
}

/// With `UPDATE_GENERATED=1`, the file is written anew.
fn check(proto: &str, made: &str, kept: &str, with_server: bool) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tempfile::tempdir().unwrap();
    let files = protox::compile([proto], [root.join("proto")]).unwrap();
    tonic_prost_build::configure()
        .emit_rerun_if_changed(false)
        .build_server(with_server)
        .out_dir(target.path())
        .compile_fds(files)
        .unwrap();
    let made = fs::read_to_string(target.path().join(made)).unwrap();
    let kept = root.join(kept);
    if env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    // Not `assert_eq`, which would print both.
    assert!(fs::read_to_string(kept).unwrap() == made, "run this with UPDATE_GENERATED=1");
}
