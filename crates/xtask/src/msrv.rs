//! Whether the published crates build with their minimum Rust version.

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, root};

/// The Rust version that every published crate declares as its `rust-version`.
const OLDEST: &str = "1.85";

/// Checks the published crates. Returns what could not be checked, and why.
pub(crate) fn check_oldest_rust(libraries: &[String]) -> Result<Vec<String>, Failure> {
    if !installed() && !install() {
        return Ok(vec![format!(
            "the oldest Rust, {OLDEST}, because rustup does not have it and cannot install it here"
        )]);
    }
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", OLDEST, "cargo", "check", "--all-features"]);
    // A directory of its own, because each compiler would discard the other's work.
    command.args(["--target-dir", "target/oldest"]);
    // cargo of another toolchain may run this program, and tells its child processes to use that toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    for library in libraries {
        command.arg("--package").arg(library.trim_start_matches("crates/"));
    }
    Step::new("the oldest Rust", command).run()?;
    Ok(Vec::new())
}

fn installed() -> bool {
    let mut command = Command::new("rustup");
    command.args(["run", OLDEST, "cargo", "--version"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn install() -> bool {
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", OLDEST, "--profile", "minimal", "--no-self-update"]);
    match Step::new("the oldest Rust is missing, installing it", command).run() {
        Ok(()) => true,
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}
