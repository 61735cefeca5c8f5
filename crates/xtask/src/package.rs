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
    let published = published(libraries)?;
    let problems = problems(&published);
    if !problems.is_empty() {
        return Err(Failure(format!("packages: {}", problems.join("; "))));
    }
    let mut command = cargo(["package", "--allow-dirty", "--quiet"]);
    for (directory, _) in &published {
        command.args(["--package", directory.trim_start_matches("crates/")]);
    }
    Step::new("packages", command).run()
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
