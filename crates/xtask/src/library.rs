//! The libraries of this workspace, as cargo itself reads their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::{Failure, Step, cargo};

/// A library below `crates/`.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) directory: PathBuf,
    /// Its minimum Rust version.
    pub(crate) rust_version: Option<String>,
    /// Whether it may be published.
    pub(crate) is_published: bool,
    /// The names of its features, `default` among them.
    pub(crate) features: Vec<String>,
    /// The whole entry in cargo's metadata.
    pub(crate) entry: Value,
}

/// What cargo knows of each package.
fn packages() -> Result<Vec<Value>, Failure> {
    let command = cargo(["metadata", "--no-deps", "--format-version", "1"]);
    let printed = Step::new("packages", command).output()?;
    let mut metadata: Value = serde_json::from_str(&printed)
        .map_err(|error| Failure(format!("cargo metadata: {error}")))?;
    match metadata["packages"].take() {
        Value::Array(packages) => Ok(packages),
        _ => Err(Failure("cargo metadata names no package".to_owned())),
    }
}

/// The names of the examples that have tests.
pub(crate) fn tested_examples() -> Result<Vec<String>, Failure> {
    let packages = packages()?;
    let targets = packages.iter().filter_map(|package| package["targets"].as_array()).flatten();
    let is_tested =
        |target: &&Value| target["kind"][0] == "example" && target["test"] == Value::Bool(true);
    let names = targets.filter(is_tested).filter_map(|target| target["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// All libraries, each after those that it depends on.
pub(crate) fn libraries() -> Result<Vec<Library>, Failure> {
    let mut left: Vec<_> = packages()?.iter().filter_map(Library::read).collect();
    let mut libraries = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let names: Vec<_> = left.iter().map(|library| library.name.clone()).collect();
        let waits = |library: &Library| names.iter().any(|name| library.is_built_with(name));
        let (waiting, ready): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        // Cargo has no circles of libraries.
        left = waiting;
        libraries.extend(ready);
    }
    match libraries.is_empty() {
        true => Err(Failure("cargo metadata names no library below crates/".to_owned())),
        false => Ok(libraries),
    }
}

impl Library {
    fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        let directory = PathBuf::from(entry["manifest_path"].as_str()?).parent()?.to_owned();
        let is_below_crates = directory.parent()?.ends_with("crates");
        (is_below_crates && directory.join("src/lib.rs").is_file()).then_some(())?;
        Some(Self {
            name: text("name")?,
            version: text("version")?,
            directory,
            rust_version: text("rust_version"),
            // An empty list of registries is `publish = false`.
            is_published: entry["publish"]
                .as_array()
                .is_none_or(|registries| !registries.is_empty()),
            features: entry["features"].as_object()?.keys().cloned().collect(),
            entry: entry.clone(),
        })
    }

    /// Whether its tests or itself depend on the package.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        self.dependencies().any(|dependency| dependency["name"] == *name)
    }

    /// Whether itself depends on the package, and not only its tests.
    fn is_built_with(&self, name: &str) -> bool {
        // A dependency without a kind is neither for tests nor for build scripts.
        let mut dependencies = self.dependencies().filter(|entry| entry["kind"].is_null());
        dependencies.any(|dependency| dependency["name"] == *name)
    }

    fn dependencies(&self) -> impl Iterator<Item = &Value> {
        self.entry["dependencies"].as_array().into_iter().flatten()
    }

    /// The flags of cargo for no feature, the default features, each feature alone, and all together.
    ///
    /// A feature that the sources do not name changes nothing in this library. It only enables features of others, which
    /// are checked with those.
    pub(crate) fn selections(&self) -> Vec<Vec<&str>> {
        let sources = sources(&self.directory.join("src"));
        let named: Vec<_> = self.features.iter().filter(|name| *name != "default").collect();
        let mut selections = vec![vec!["--no-default-features"]];
        if named.len() < self.features.len() {
            selections.push(Vec::new());
        }
        let alone = named.iter().filter(|name| sources.contains(&format!("feature = \"{name}\"")));
        selections.extend(alone.map(|name| vec!["--no-default-features", "--features", name]));
        if named.len() > 1 {
            selections.push(vec!["--all-features"]);
        }
        selections
    }
}

/// The text of all files of Rust below a directory.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = entries.map(|entry| match entry.path() {
        path if path.is_dir() => sources(&path),
        path if path.extension().is_some_and(|extension| extension == "rs") => {
            fs::read_to_string(path).unwrap_or_default()
        }
        _ => String::new(),
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(features: &str) -> Library {
        let entry = format!(
            r#"{{"name": "xtask", "version": "1.0.0", "publish": [], "features": {features},
                "manifest_path": "{}/../sluicegate-core/Cargo.toml"}}"#,
            env!("CARGO_MANIFEST_DIR"),
        );
        let entry = entry.replace("/xtask/..", "");
        Library::read(&serde_json::from_str(&entry).unwrap()).unwrap()
    }

    #[test]
    fn every_feature_is_checked_alone_and_nothing_twice() {
        let lines = |features| {
            let library = library(features);
            Vec::from_iter(library.selections().iter().map(|flags| flags.join(" ")))
        };
        let all = r#"{"default": ["file"], "file": [], "std": [], "tracing": ["dep:tracing"]}"#;
        // No source names `std`.
        let expected = [
            "--no-default-features",
            "",
            "--no-default-features --features file",
            "--no-default-features --features tracing",
            "--all-features",
        ];
        assert_eq!(lines(all), expected);
        assert_eq!(lines("{}"), ["--no-default-features"]);
        assert_eq!(
            lines(r#"{"file": []}"#),
            ["--no-default-features", "--no-default-features --features file"]
        );
    }

    #[test]
    fn a_library_comes_after_those_that_it_depends_on() {
        let libraries = libraries().unwrap_or_else(|failure| panic!("{failure}"));
        for (at, library) in libraries.iter().enumerate() {
            let early = libraries[at..].iter().find(|later| library.is_built_with(&later.name));
            assert!(early.is_none(), "{} comes before {:?}", library.name, early);
        }
        assert!(libraries[1..].iter().any(|library| library.is_built_with(&libraries[0].name)));
    }

    #[test]
    fn a_library_that_is_not_published_says_so() {
        assert!(!library("{}").is_published);
    }

    #[test]
    fn every_published_crate_declares_its_oldest_rust() {
        let libraries = libraries().unwrap_or_else(|failure| panic!("{failure}"));
        assert!(libraries.len() >= 10);
        let published = libraries.iter().filter(|library| library.is_published);
        let silent = published.filter(|library| library.rust_version.is_none());
        assert_eq!(Vec::from_iter(silent.map(|library| &library.name)), [""; 0]);
    }
}
