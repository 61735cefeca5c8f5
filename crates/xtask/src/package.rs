//! Whether each published crate can be packaged, and has what its page needs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::library::Library;
use crate::step::{Failure, Step, cargo, root};

/// What a manifest needs for the crate's page on the registry and on docs.rs, by its name in cargo's metadata.
const WANTED: [&str; 7] =
    ["description", "license", "rust_version", "readme", "documentation", "keywords", "categories"];

/// Files that every package carries.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages the published libraries, and unpacks the packages side by side. Returns their directory.
///
/// `cargo package` would compile them too, but as long as the version stays the same it uses the packages of an
/// earlier run.
pub(crate) fn unpacked_packages(libraries: &[Library]) -> Result<PathBuf, Failure> {
    let published: Vec<_> = libraries.iter().filter(|library| library.is_published).collect();
    let problems: Vec<_> = published.iter().flat_map(|library| problems(library)).collect();
    if !problems.is_empty() {
        return Err(Failure(format!("packages: {}", problems.join("; "))));
    }
    let mut command = cargo(["package", "--no-verify", "--allow-dirty", "--quiet"]);
    command.arg("--target-dir").arg(root().join("target"));
    for library in &published {
        command.args(["--package", &library.name]);
    }
    Step::new("packages", command).run()?;

    let unpacked = root().join("target/unpacked");
    let failed = |error| Failure(format!("target/unpacked: {error}"));
    fs::create_dir_all(&unpacked).map_err(failed)?;
    for entry in fs::read_dir(&unpacked).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join("Cargo.toml.orig").is_file() {
            fs::remove_dir_all(path).map_err(failed)?;
        }
    }
    for Library { name, version, .. } in published {
        // `m`: with the time of the archive, cargo would not see that a package changed since the last run.
        let mut tar = Command::new("tar");
        tar.current_dir(&unpacked).arg("-xzmf");
        tar.arg(root().join(format!("target/package/{name}-{version}.crate")));
        Step::new(format!("{name} unpacked"), tar).run()?;
    }
    Ok(unpacked)
}

/// Makes the packages of some libraries a workspace in which they depend on each other. Returns its manifest.
pub(crate) fn workspace_of(unpacked: &Path, libraries: &[&Library]) -> Result<PathBuf, Failure> {
    let mut members = String::new();
    let mut patches = String::new();
    for Library { name, version, .. } in libraries {
        members += &format!("    \"{name}-{version}\",\n");
        patches += &format!("{name} = {{ path = \"{name}-{version}\" }}\n");
    }
    let text = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}"
    );
    let manifest = unpacked.join("Cargo.toml");
    fs::write(&manifest, text).map_err(|error| Failure::at(&manifest, &error))?;
    Ok(manifest)
}

fn problems(library: &Library) -> Vec<String> {
    let Library { name, directory, entry, .. } = library;
    let is_missing = |what: &Value| match what {
        Value::Array(words) => words.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => true,
    };
    let missing = WANTED.iter().filter(|what| is_missing(&entry[**what]));
    let mut problems: Vec<_> = missing.map(|what| format!("{name} has no `{what}`")).collect();
    let badges = &entry["metadata"]["docs"]["rs"]["rustdoc-args"];
    if !library.features.is_empty() && is_missing(badges) {
        problems.push(format!("{name} has no badges for features on docs.rs"));
    }
    let files = FILES.iter().filter(|file| !directory.join(file).is_file());
    problems.extend(files.map(|file| format!("{name} has no {file}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::libraries;

    #[test]
    fn every_crate_has_what_its_page_needs() {
        let libraries = libraries().unwrap_or_else(|failure| panic!("{failure}"));
        let published = libraries.iter().filter(|library| library.is_published);
        assert_eq!(Vec::from_iter(published.flat_map(problems)), [""; 0]);
    }

    #[test]
    fn what_a_crate_lacks_is_named() {
        let mut library = libraries().unwrap_or_else(|failure| panic!("{failure}")).remove(0);
        library.entry["description"] = Value::Null;
        library.directory.push("src");
        let name = &library.name;
        let expected = ["no `description`", "no README.md", "no LICENSE-MIT", "no LICENSE-APACHE"];
        assert_eq!(problems(&library), expected.map(|what| format!("{name} has {what}")));
    }
}
