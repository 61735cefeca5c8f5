//! Whether each published crate can be packaged, and has what its page needs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::step::{Failure, Step, cargo, root};

/// Lines that a manifest needs for the crate's page on the registry and on docs.rs.
const WANTED: [(&str, &str); 8] = [
    ("description = \"", "a description"),
    ("license.workspace = true", "the licence of the workspace"),
    ("rust-version = \"", "a minimum Rust version"),
    ("readme = \"README.md\"", "a README of its own"),
    ("documentation = \"https://docs.rs/", "the address of its documentation"),
    ("keywords = [", "keywords"),
    ("categories = [", "categories"),
    ("rustdoc-args = [\"--cfg\", \"docsrs\"]", "metadata for docs.rs, with badges for features"),
];

/// Files that every package carries.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages the crates below these directories, and compiles the packages with all features.
///
/// `cargo package` would compile them too, but as long as the version stays the same it uses the packages of an
/// earlier run. Returns the workspace of the unpacked packages.
pub(crate) fn check_packages(libraries: &[String]) -> Result<PathBuf, Failure> {
    let published = published(libraries)?;
    let problems = problems(&published);
    if !problems.is_empty() {
        return Err(Failure(format!("packages: {}", problems.join("; "))));
    }
    let names: Vec<_> =
        published.iter().map(|(directory, _)| directory.trim_start_matches("crates/")).collect();

    let mut command = cargo(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    command.arg("--target-dir").arg(root().join("target"));
    for name in &names {
        command.args(["--package", name]);
    }
    Step::new("packages", command).run()?;

    let unpacked = unpack(&names)?;
    let mut command = cargo(["check", "--workspace", "--all-features", "--manifest-path"]);
    command.arg(unpacked.join("Cargo.toml")).arg("--target-dir").arg(unpacked.join("target"));
    Step::new("packages, compiled", command).run()?;
    Ok(unpacked)
}

/// Unpacks the packages side by side, as a workspace in which they depend on each other.
fn unpack(names: &[&str]) -> Result<PathBuf, Failure> {
    let unpacked = root().join("target/unpacked");
    let failed = |error| Failure(format!("target/unpacked: {error}"));
    let version = version()?;
    let mut manifest = String::from(
        "[workspace]\nresolver = \"3\"\nmembers = [\"sluicegate*\"]\n\n[patch.crates-io]\n",
    );
    fs::create_dir_all(&unpacked).map_err(failed)?;
    for entry in fs::read_dir(&unpacked).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join("Cargo.toml.orig").is_file() {
            fs::remove_dir_all(path).map_err(failed)?;
        }
    }
    for name in names {
        // `m`: with the time of the archive, cargo would not see that a package changed since the last run.
        let mut tar = Command::new("tar");
        tar.current_dir(&unpacked).arg("-xzmf");
        tar.arg(root().join(format!("target/package/{name}-{version}.crate")));
        Step::new(format!("{name} unpacked"), tar).run()?;
        manifest += &format!("{name} = {{ path = \"{name}-{version}\" }}\n");
    }
    fs::write(unpacked.join("Cargo.toml"), manifest).map_err(failed)?;
    fs::copy(root().join("Cargo.lock"), unpacked.join("Cargo.lock")).map_err(failed)?;
    Ok(unpacked)
}

/// The version of all crates: they are released together.
fn version() -> Result<String, Failure> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))
        .map_err(|error| Failure(format!("Cargo.toml: {error}")))?;
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| Failure("Cargo.toml: no version".to_owned()))
}

/// The directories of crates that are published, each with its manifest.
fn published(libraries: &[String]) -> Result<Vec<(&str, String)>, Failure> {
    let mut published = Vec::new();
    for directory in libraries {
        let manifest = fs::read_to_string(root().join(directory).join("Cargo.toml"))
            .map_err(|error| Failure(format!("{directory}/Cargo.toml: {error}")))?;
        if !manifest.lines().any(|line| line == "publish = false") {
            published.push((directory.as_str(), manifest));
        }
    }
    Ok(published)
}

fn problems(published: &[(&str, String)]) -> Vec<String> {
    let mut problems = Vec::new();
    for (directory, manifest) in published {
        problems.extend(missing(manifest).map(|what| format!("{directory} does not have {what}")));
        let files = FILES.iter().filter(|file| !root().join(directory).join(file).is_file());
        problems.extend(files.map(|file| format!("{directory} has no {file}")));
    }
    problems
}

fn missing(manifest: &str) -> impl Iterator<Item = &'static str> {
    let lines: Vec<_> = manifest.lines().collect();
    let has = move |start: &str| lines.iter().any(|line| line.starts_with(start));
    WANTED.into_iter().filter(move |(line, _)| !has(line)).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::libraries;

    #[test]
    fn every_crate_has_what_its_page_needs() {
        let libraries = libraries().unwrap_or_else(|failure| panic!("{failure}"));
        let published = published(&libraries).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(published.len() >= 10);
        assert_eq!(problems(&published), [""; 0]);
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let manifest =
            "[package]\ndescription = \"Good.\"\nkeywords = [\"a\"]\nlicense.workspace = true\n";
        let missing: Vec<_> = missing(manifest).collect();
        assert_eq!(missing.len(), WANTED.len() - 3);
        assert_eq!(missing[0], "a minimum Rust version");
    }
}
