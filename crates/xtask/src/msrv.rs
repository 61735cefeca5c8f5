//! Whether the published crates build with their minimum Rust version.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, root};

/// Checks the published crates, those with the same `rust-version` together. Returns what could not be checked, and
/// why.
pub(crate) fn check_oldest_rust(libraries: &[String]) -> Result<Vec<String>, Failure> {
    let mut unchecked = Vec::new();
    for (version, libraries) in by_version(libraries)? {
        if !installed(&version) && !install(&version) {
            unchecked.push(format!(
                "Rust {version}, because rustup does not have it and cannot install it here"
            ));
            continue;
        }
        check(&version, &libraries)?;
    }
    Ok(unchecked)
}

/// The packages by the Rust version that they declare as their `rust-version`.
fn by_version(libraries: &[String]) -> Result<BTreeMap<String, Vec<&str>>, Failure> {
    let mut packages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for library in libraries {
        let manifest = fs::read_to_string(root().join(library).join("Cargo.toml"))
            .map_err(|error| Failure(format!("{library}/Cargo.toml: {error}")))?;
        let version = declared(&manifest)
            .ok_or_else(|| Failure(format!("{library}/Cargo.toml: no `rust-version`")))?;
        packages.entry(version.to_owned()).or_default().push(library.trim_start_matches("crates/"));
    }
    Ok(packages)
}

fn declared(manifest: &str) -> Option<&str> {
    let mut lines = manifest.lines();
    lines.find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'))
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
    match Step::new(format!("Rust {version} is missing, installing it"), command).run() {
        Ok(()) => true,
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::libraries;

    #[test]
    fn every_published_crate_declares_its_oldest_rust() {
        let libraries = libraries().unwrap_or_else(|failure| panic!("{failure}"));
        let published: Vec<_> =
            libraries.into_iter().filter(|library| library != "crates/xtask").collect();
        let versions = by_version(&published).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(versions.contains_key("1.85"), "{versions:?}");
    }
}
