//! Whether the published crates compile with the lowest versions of the dependencies that they declare.
//!
//! An application may hold a dependency back. Then a lower bound that is too low ends in errors of the compiler, far from
//! their cause. The lock files of this workspace have the newest versions and never notice.

use std::fs;
use std::path::Path;

use crate::step::{Failure, Step, cargo, root};

/// Checks the packages in the workspace `unpacked`, which is not used after this. Nothing of it is run.
///
/// Only direct dependencies are as low as declared: those below them are not ours to bound. If this fails to resolve, one
/// of them needs more than we declare, and the lower bound has to be raised.
pub(crate) fn check_lowest_versions(unpacked: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(unpacked).map_err(|error| failed(unpacked, error))? {
        let manifest = entry.map_err(|error| failed(unpacked, error))?.path().join("Cargo.toml");
        if manifest.is_file() {
            let text = fs::read_to_string(&manifest).map_err(|error| failed(&manifest, error))?;
            fs::write(&manifest, without_dev_dependencies(&text))
                .map_err(|error| failed(&manifest, error))?;
        }
    }
    let manifest = unpacked.join("Cargo.toml");
    let mut lock = cargo(["-Z", "direct-minimal-versions", "generate-lockfile", "--manifest-path"]);
    // The stable Cargo resolves in this way too, if it may.
    lock.arg(&manifest).env("RUSTC_BOOTSTRAP", "1");
    Step::new("lowest versions", lock).run()?;
    let mut check =
        cargo(["check", "--workspace", "--all-features", "--locked", "--manifest-path"]);
    // What is not lower than in the workspace is compiled already.
    check.arg(&manifest).arg("--target-dir").arg(root().join("target"));
    Step::new("lowest versions, compiled", check).run()
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

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
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
