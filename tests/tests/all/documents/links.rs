//! Links in the documents, and paths that they name, lead to files that exist.

use std::fs;
use std::path::PathBuf;

use super::root;

#[test]
fn every_link_to_a_file_leads_to_one() {
    let documents = documents();
    assert!(documents.len() > 20, "{documents:?}");
    let mut broken = Vec::new();
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for (index, _) in text.match_indices("](") {
            let Some((target, _)) = text[index + 2..].split_once(')') else { continue };
            let target = target.split(['#', ' ']).next().unwrap_or_default();
            let elsewhere =
                target.is_empty() || target.contains("://") || target.starts_with("crate::");
            if !elsewhere && !document.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_path_in_the_architecture_and_the_contribution_guide_exists() {
    const ROOMS: [&str; 6] = ["crates/", "tests/", "docs/", "examples/", "benches/", "packaging/"];
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(name)).unwrap();
        for code in text.split('`').skip(1).step_by(2) {
            if ROOMS.iter().any(|room| code.starts_with(room)) && !code.contains([' ', '\n']) {
                assert!(root().join(code).exists(), "{name} names {code}");
            }
        }
    }
}

/// The documents in the root, in `docs/` and in `packaging/`, and the README of each crate.
fn documents() -> Vec<PathBuf> {
    let mut folders = vec![root()];
    folders.extend(["docs", "docs/benchmarks", "packaging"].map(|folder| root().join(folder)));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        folders.push(entry.unwrap().path());
    }
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Registries show them without the repository.
#[test]
fn no_readme_of_a_crate_has_a_link_into_the_repository() {
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let readme = entry.unwrap().path().join("README.md");
        let Ok(text) = fs::read_to_string(&readme) else { continue };
        for (index, _) in text.match_indices("](") {
            let target = text[index + 2..].split(')').next().unwrap_or_default();
            let is_whole = target.contains("://") || target.starts_with('#');
            assert!(is_whole, "{}: {target}", readme.display());
        }
    }
}
