//! Programs that `benches/server.rs` starts: our own command, and throttlecrab-server, a rival that is a program too.

use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::path::PathBuf;

use crate::step::{Failure, Step, cargo, root};

/// The program that starts them.
pub(super) const PROGRAM: &str = "server";

/// The variable that tells it where our command is.
pub(super) const OURS: &str = "SLUICEGATE";

/// The variable that tells it where throttlecrab-server is.
pub(super) const THROTTLECRAB: &str = "THROTTLECRAB_SERVER";

/// The name of the rival.
pub(super) const NAME: &str = "throttlecrab-server";

/// The release that is measured.
pub(super) const RELEASE: &str = "0.4.40";

/// Our command as packages carry it, unless the variable names one.
pub(super) fn ours() -> Result<OsString, Failure> {
    if let Some(program) = env::var_os(OURS) {
        return Ok(program);
    }
    let command = cargo(["build", "--profile", "dist", "--package", "sluicegate-server"]);
    Step::new("sluicegate, as packages carry it", command).run()?;
    let directory = env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    Ok(directory.join("dist").join(format!("sluicegate{EXE_SUFFIX}")).into())
}

/// The rival: the file that the variable names, otherwise one that is installed now, once. Without `protoc` it would
/// have no gRPC.
pub(super) fn throttlecrab() -> Result<OsString, Failure> {
    if let Some(program) = env::var_os(THROTTLECRAB) {
        return Ok(program);
    }
    let directory = root().join("target").join(NAME);
    let program = directory.join("bin").join(format!("{NAME}{EXE_SUFFIX}"));
    if !program.exists() {
        let protoc = std::process::Command::new("protoc").arg("--version").output();
        if protoc.is_err() {
            return Err(Failure(format!(
                "{NAME} is not measured: its gRPC needs `protoc`, in Debian the package protobuf-compiler"
            )));
        }
        let mut command = cargo(["install", NAME, "--locked", "--version", RELEASE, "--root"]);
        command.arg(&directory).env_remove("CARGO_TARGET_DIR");
        Step::new(format!("{NAME}, a rival"), command).run()?;
    }
    Ok(program.into())
}
