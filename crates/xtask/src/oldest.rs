//! Whether the published crates build with the oldest Rust and the lowest versions of dependencies that they declare.
//!
//! An application may hold both back. Then a lower bound that is too low ends in errors of the compiler, far from their
//! cause. The lock files of this workspace have the newest versions and never notice.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::library::Library;
use crate::package::workspace_of;
use crate::step::{Failure, Step, cargo, root};

/// Checks the packages that are unpacked in a directory, those with the same `rust-version` together. Nothing of them is
/// run. Returns what could not be checked, and why.
///
/// Only direct dependencies are as low as declared: those below them are not ours to bound. If this fails to resolve, one
/// of them needs more than we declare, and the lower bound has to be raised.
pub(crate) fn check_oldest(unpacked: &Path, libraries: &[Library]) -> Result<Vec<String>, Failure> {
    for entry in fs::read_dir(unpacked).map_err(|error| Failure::at(unpacked, &error))? {
        let manifest =
            entry.map_err(|error| Failure::at(unpacked, &error))?.path().join("Cargo.toml");
        if manifest.is_file() {
            let text =
                fs::read_to_string(&manifest).map_err(|error| Failure::at(&manifest, &error))?;
            fs::write(&manifest, without_dev_dependencies(&text))
                .map_err(|error| Failure::at(&manifest, &error))?;
        }
    }
    let mut unchecked = Vec::new();
    let mut members = Vec::new();
    for (version, libraries) in by_version(libraries) {
        // Without those that need a newer Rust, whose dependencies may need it too.
        members.extend(&libraries);
        let manifest = workspace_of(unpacked, &members)?;
        let mut lock =
            cargo(["-Z", "direct-minimal-versions", "generate-lockfile", "--manifest-path"]);
        // The stable Cargo resolves in this way too, if it may.
        lock.arg(&manifest).env("RUSTC_BOOTSTRAP", "1");
        Step::new(format!("lowest versions for Rust {version}"), lock).run()?;

        let mut check = if is_installed(version) || install(version) {
            cargo_of(version)
        } else {
            unchecked.push(format!(
                "Rust {version}, because rustup does not have it and cannot install it here"
            ));
            cargo([])
        };
        check.args(["check", "--all-features", "--locked", "--manifest-path"]).arg(&manifest);
        // A directory of its own, because each compiler would discard the other's work.
        check.arg("--target-dir").arg(root().join(format!("target/oldest-{version}")));
        for library in libraries {
            check.args(["--package", &library.name]);
        }
        Step::new(format!("lowest versions for Rust {version}, compiled"), check).run()?;
    }
    Ok(unchecked)
}

/// The dependencies of tests would raise those of the library.
fn without_dev_dependencies(manifest: &str) -> String {
    let mut is_dev = false;
    let kept = manifest.split_inclusive('\n').filter(|line| {
        if line.starts_with('[') {
            is_dev = line.contains("dev-dependencies");
        }
        !is_dev
    });
    kept.collect()
}

/// The published libraries by the Rust version that they declare, the oldest first.
fn by_version(libraries: &[Library]) -> BTreeMap<&str, Vec<&Library>> {
    let mut packages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for library in libraries.iter().filter(|library| library.is_published) {
        packages
            .entry(library.rust_version.as_deref().unwrap_or_default())
            .or_default()
            .push(library);
    }
    packages
}

fn cargo_of(version: &str) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", version, "cargo"]);
    // cargo of another toolchain may run this program, and tells its child processes to use that toolchain.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command
}

fn is_installed(version: &str) -> bool {
    let mut command = cargo_of(version);
    command.arg("--version");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dependencies_of_tests_are_left_out() {
        let manifest = "\
[dependencies.http]
version = \"1.1\"

[dev-dependencies.tower]
version = \"0.5\"
features = [
    \"util\",
]

[target.\"cfg(unix)\".dev-dependencies.rustix]
version = \"1\"

[lints.rust]
unsafe_code = \"forbid\"
";
        let kept = without_dev_dependencies(manifest);
        assert_eq!(
            kept,
            "[dependencies.http]\nversion = \"1.1\"\n\n[lints.rust]\nunsafe_code = \"forbid\"\n"
        );
    }
}
