//! docs/hazards.md names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_page_of_hazards_names_exists() {
    let root = super::root();
    let page = fs::read_to_string(root.join("docs/hazards.md")).unwrap();
    let named = tests_named_in(&page);
    assert!(named.len() >= 6, "found only {} tests on the page", named.len());

    let mut sources = Vec::new();
    for folder in ["crates", "tests", "examples", "benches"] {
        collect(&root.join(folder), &mut sources);
    }
    let functions: BTreeSet<_> = sources.iter().flat_map(|source| functions_of(source)).collect();

    let missing: Vec<_> = named.iter().filter(|name| !functions.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/hazards.md names tests that do not exist: {missing:?}");
}

/// Every `name` in backticks in the second column of a table.
fn tests_named_in(page: &str) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let columns = rows.filter_map(|row| row.trim_end_matches([' ', '|']).rsplit_once(" | "));
    let quoted = columns.flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2));
    quoted.map(str::to_owned).collect()
}

fn collect(folder: &Path, sources: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, sources);
        } else if is_rust(&path) {
            sources.push(fs::read_to_string(&path).unwrap());
        }
    }
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// Test functions, and the scenarios of the table that every adapter has to pass.
fn functions_of(source: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let functions = source.split("fn ").skip(1);
    let functions =
        functions.map(move |rest| rest.split(|c| !is_name(c)).next().unwrap_or_default());
    let scenarios = source
        .split("(server")
        .map(move |rest| rest.rsplit(|c| !is_name(c)).next().unwrap_or_default());
    functions.chain(scenarios).map(str::to_owned)
}
