//! The layers of the core, and the rule that no files import each other in a circle.
//!
//! Imports are read as text: `use` items, and paths in code that begin with `crate`, `self` or `super`. A name that a
//! module re-exports counts as imported from the file that defines it. Tests are left out. A file may also use names
//! of the `mod.rs` of its own folder: a folder is one room.

mod graph;
mod imports;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use self::graph::{circles, edges};
use self::imports::{Source, read_crate};
use crate::step::{Failure, root};

/// The modules of the core, from the ground up, and what each of them may import.
const CORE: [(&str, &[&str]); 12] = [
    ("inline_vec", &[]),
    ("unheard", &[]),
    ("limit", &["inline_vec"]),
    ("clock", &["limit"]),
    ("key", &["unheard"]),
    ("condition", &["clock", "key", "unheard"]),
    ("cost", &["key"]),
    ("http", &["limit"]),
    ("store", &["clock", "cost", "inline_vec", "key", "limit"]),
    ("observe", &["clock", "http", "key", "limit", "store", "unheard"]),
    ("rule", &["condition", "cost", "key", "limit", "observe", "store"]),
    ("admission", &["clock", "cost", "http", "key", "limit", "observe", "rule", "store"]),
];

/// Checks the layers of the core, and every crate for circles.
pub(crate) fn check() -> Result<(), Failure> {
    eprintln!("\n==> layers: which module of the core imports which, and circles among files");
    let mut problems = BTreeSet::new();
    for name in crates()? {
        let directory = root().join("crates").join(&name).join("src");
        let sources = read_crate(&directory)
            .map_err(|(path, error)| Failure(format!("{}: {error}", path.display())))?;
        let edges = edges(&sources);
        if name == "sluicegate-core" {
            problems.extend(broken_layers(&sources, &edges));
        }
        for circle in circles(sources.len(), &edges) {
            let files: Vec<_> = circle.iter().map(|at| sources[*at].file.as_str()).collect();
            problems.insert(format!("{name}: these files import each other: {}", files.join(", ")));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure(Vec::from_iter(problems).join("\n")))
}

fn crates() -> Result<Vec<String>, Failure> {
    let unreadable = |error| Failure(format!("crates: {error}"));
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("crates")).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.path().join("src").is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The imports of the core that its table does not allow.
fn broken_layers(sources: &[Source], edges: &BTreeSet<(usize, usize)>) -> Vec<String> {
    let top = |at: usize| sources[at].module.first().map_or("", String::as_str);
    let mut broken = Vec::new();
    for &(from, to) in edges {
        let Some((_, allowed)) = CORE.iter().find(|(module, _)| *module == top(from)) else {
            // The root and the public modules re-export from everywhere.
            continue;
        };
        if top(from) != top(to) && !allowed.contains(&top(to)) {
            let (from, to) = (&sources[from], &sources[to]);
            broken.push(format!(
                "sluicegate-core: {} imports {}, which is not below it: see the table in {}",
                from.file,
                to.file,
                Path::new(file!()).display()
            ));
        }
    }
    broken
}
