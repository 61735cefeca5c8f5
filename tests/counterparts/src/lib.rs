//! Tests against programs that users run. `cargo xtask counterparts` installs the programs and runs the tests.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A program of this machine, or one that `cargo xtask counterparts` has put into this repository.
///
/// # Panics
///
/// If it is missing.
pub fn find(name: &str) -> PathBuf {
    installed(name).unwrap_or_else(|| {
        panic!("{name} is missing: `cargo xtask counterparts` installs it on Debian and Ubuntu")
    })
}

/// An installed Chromium.
///
/// # Panics
///
/// If none is installed.
pub fn chromium() -> PathBuf {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find_map(installed).expect(
        "no Chromium is installed: `cargo xtask counterparts` installs it on Debian, \
         or get it with `apt-get install chromium`",
    )
}

/// The directory of this repository.
///
/// # Panics
///
/// If it is missing.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a directory")
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian has servers in `/usr/sbin`, where shells of users do not look.
    let more = [root().join("target/tools/bin"), PathBuf::from("/usr/sbin")];
    let mut files = env::split_paths(&path).chain(more).map(|directory| directory.join(name));
    files.find(|file| file.is_file())
}

/// Our program, built as it is now.
///
/// # Panics
///
/// If it does not compile.
pub fn sluicegate() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--package", "sluicegate-server"]).current_dir(root());
        assert!(command.status().expect("cargo").success(), "sluicegate does not compile");
        let test = env::current_exe().expect("a path");
        test.ancestors().nth(2).expect("a directory").join("sluicegate")
    })
}
