//! Whether each published crate can be packaged, and has what its page needs.

use std::fs;

use crate::step::{Failure, Step, cargo, root};

/// What a crate's page on the registry and on docs.rs is made of: lines that its manifest has to have.
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

/// The crates below these directories, packaged and compiled as a user will compile them. Crates that are not
/// published yet are taken from the packages made in the same run.
pub(crate) fn check_packages(libraries: &[String]) -> Result<(), Failure> {
    let mut command = cargo(["package", "--allow-dirty", "--quiet"]);
    let mut problems = Vec::new();
    for directory in libraries {
        let path = root().join(directory);
        let manifest = fs::read_to_string(path.join("Cargo.toml"))
            .map_err(|error| Failure(format!("{directory}/Cargo.toml: {error}")))?;
        if manifest.lines().any(|line| line == "publish = false") {
            continue;
        }
        problems.extend(missing(&manifest).map(|what| format!("{directory} has not {what}")));
        let files = FILES.iter().filter(|file| !path.join(file).is_file());
        problems.extend(files.map(|file| format!("{directory} has no {file}")));
        command.args(["--package", directory.trim_start_matches("crates/")]);
    }
    if !problems.is_empty() {
        return Err(Failure(format!("packages: {}", problems.join("; "))));
    }
    Step::new("packages", command).run()
}

fn missing(manifest: &str) -> impl Iterator<Item = &'static str> {
    let lines: Vec<_> = manifest.lines().collect();
    let has = move |start: &str| lines.iter().any(|line| line.starts_with(start));
    WANTED.into_iter().filter(move |(line, _)| !has(line)).map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let manifest =
            "[package]\ndescription = \"Good.\"\nkeywords = [\"a\"]\nlicense.workspace = true\n";
        let missing: Vec<_> = missing(manifest).collect();
        assert_eq!(missing.len(), WANTED.len() - 3);
        assert_eq!(missing[0], "a minimum Rust version");
    }
}
