//! redis-cell, a rival that is a module of the Redis server. It cannot be a dependency of `benches/`, because it is a
//! `dylib`, and it would bring along a crate with a known vulnerability. So it is built outside of the workspace.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::step::{Failure, Step, cargo, root};

/// Its name.
pub(super) const NAME: &str = "redis-cell";

/// The release that is measured.
pub(super) const RELEASE: &str = "0.2.2";

/// The variable that tells `benches/redis.rs` where the module is.
pub(super) const VARIABLE: &str = "REDIS_CELL";

/// The program that loads it.
pub(super) const PROGRAM: &str = "redis";

/// The module: the file that the variable names, otherwise one that is built now, once, in some seconds.
pub(super) fn get() -> Result<OsString, Failure> {
    match env::var_os(VARIABLE) {
        Some(module) => Ok(module),
        None => build(&root().join("target").join(NAME)).map(OsString::from),
    }
}

fn build(directory: &Path) -> Result<PathBuf, Failure> {
    let manifest = directory.join("Cargo.toml");
    let written = fs::create_dir_all(directory)
        .and_then(|()| fs::write(&manifest, text()))
        .and_then(|()| fs::write(directory.join("lib.rs"), ""));
    written.map_err(|error| Failure::at(directory, &error))?;
    let mut command = cargo(["build", "--release", "--package", NAME, "--manifest-path"]);
    command.arg(&manifest).arg("--target-dir").arg(directory.join("target"));
    Step::new(format!("{NAME}, a rival"), command).run()?;
    let file = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", NAME.replace('-', "_"));
    Ok(directory.join("target").join("release").join(file))
}

/// A package with only that dependency.
fn text() -> String {
    format!(
        "[package]\n\
         name = \"rival\"\n\
         version = \"0.0.0\"\n\
         edition = \"2024\"\n\
         publish = false\n\n\
         [lib]\n\
         path = \"lib.rs\"\n\n\
         [dependencies]\n\
         {NAME} = \"={RELEASE}\"\n\n\
         [workspace]\n"
    )
}
