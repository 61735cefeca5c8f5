//! The README is short, and the table of features in the guide is complete. Their snippets run as documentation tests.

use std::fs;

use super::root;

const MOST_BYTES: usize = 9_000;

#[test]
fn the_readme_stays_short() {
    let readme = read("README.md");
    assert!(readme.len() < MOST_BYTES, "{} bytes; the guide has room", readme.len());
}

#[test]
fn the_guide_names_every_feature_of_every_library() {
    let page = read("crates/sluicegate/src/guide/first_limit.md");
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !root().join("crates").join(&name).join("src/lib.rs").is_file() {
            continue;
        }
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        if manifest.contains("publish = false") {
            continue;
        }
        crates += 1;
        let row = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("no row for {name}"));
        for feature in features(&manifest) {
            assert!(row.contains(&format!("`{feature}`")), "{name}: `{feature}` is not in: {row}");
        }
        let named = row.split('`').skip(3).step_by(2).filter(|name| !name.starts_with('R'));
        let unknown: Vec<_> = named.filter(|name| !features(&manifest).contains(name)).collect();
        assert!(unknown.is_empty(), "{name} has no feature {unknown:?}");
    }
    assert!(crates >= 8);
}

/// The names in the section `[features]`, without `default` and those that begin with `_`, which are private.
fn features(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once(" = [").map(|(name, _)| name));
    names.filter(|name| *name != "default" && !name.starts_with(['#', '_'])).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}
