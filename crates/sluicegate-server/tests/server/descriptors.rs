//! The descriptors for reflection are those of Envoy's protocol files.

use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

const SERVICES: [&str; 3] = [
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/service/auth/v3/external_auth.proto",
    "envoy/service/rate_limit_quota/v3/rlqs.proto",
];

/// Where those files and the ones that they import are.
const FOLDERS: [&str; 4] = ["data-plane-api", "googleapis", "protoc-gen-validate", "xds"];

/// The protocol files that the crate `envoy-types` is made from and carries, in the version of `Cargo.lock`.
fn protocol() -> PathBuf {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap();
    let (_, package) = lock.split_once("name = \"envoy-types\"\nversion = \"").unwrap();
    let (version, _) = package.split_once('"').unwrap();
    let own = || env::home_dir().unwrap().join(".cargo");
    let cargo = env::var_os("CARGO_HOME").map_or_else(own, PathBuf::from);
    let registries = fs::read_dir(cargo.join("registry/src")).unwrap();
    let mut places = registries
        .map(|registry| registry.unwrap().path().join(format!("envoy-types-{version}/proto")));
    places.find(|place| place.is_dir()).expect("the source of envoy-types")
}

#[test]
fn the_descriptors_are_those_of_the_protocol_files() {
    let protocol = protocol();
    let folders = FOLDERS.map(|folder| protocol.join(folder));
    let mut files = protox::compile(SERVICES, folders).unwrap();
    // Comments and places of the text are of no use to programs.
    files.file.iter_mut().for_each(|file| file.source_code_info = None);
    let (kept, made) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("src/envoy.bin"), files.encode_to_vec());
    if env::var_os("UPDATE_GENERATED").is_some() {
        fs::write(&kept, &made).unwrap();
    }
    // Not `assert_eq`, which would print both.
    assert!(fs::read(&kept).unwrap_or_default() == made, "run this with UPDATE_GENERATED=1");
}
