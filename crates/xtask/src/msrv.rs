//! Whether the published crates build with their minimum Rust version.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::library::Library;
use crate::step::{Failure, Step, root};

/// Checks the published crates, those with the same `rust-version` together. Returns what could not be checked, and
/// why.
pub(crate) fn check_oldest_rust(libraries: &[Library]) -> Result<Vec<String>, Failure> {
    let mut unchecked = Vec::new();
    for (version, libraries) in by_version(libraries) {
        if !installed(version) && !install(version) {
            unchecked.push(format!(
                "Rust {version}, because rustup does not have it and cannot install it here"
            ));
            continue;
        }
        check(version, &libraries)?;
    }
    Ok(unchecked)
}

/// The names of the published libraries by the Rust version that they declare.
fn by_version(libraries: &[Library]) -> BTreeMap<&str, Vec<&str>> {
    let mut packages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for library in libraries.iter().filter(|library| library.is_published) {
        let version = library.rust_version.as_deref().unwrap_or_default();
        packages.entry(version).or_default().push(library.name.as_str());
    }
    packages
}

fn check(version: &str, packages: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", version, "cargo", "check", "--all-features"]);
    // A directory of its own, because each compiler would discard the other's work.
    command.arg("--target-dir").arg(format!("target/oldest-{version}"));
    // cargo of another toolchain may run this program, and tells its child processes to use that toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    for package in packages {
        command.args(["--package", package]);
    }
    Step::new(format!("Rust {version}"), command).run()
}

fn installed(version: &str) -> bool {
    let mut command = Command::new("rustup");
    command.args(["run", version, "cargo", "--version"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn install(version: &str) -> bool {
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", version, "--profile", "minimal", "--no-self-update"]);
    match Step::new(format!("Rust {version} is missing, installing it"), command).fetch() {
        Ok(()) => true,
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}
