//! Which file imports which, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Source;

/// How often a name may be re-exported before it is defined.
const MOST_HOPS: usize = 8;

/// Pairs of a file and another one that it imports from.
pub(super) fn edges(sources: &[Source]) -> BTreeSet<(usize, usize)> {
    let files: BTreeMap<&[String], usize> =
        sources.iter().enumerate().map(|(at, source)| (&*source.module, at)).collect();
    let mut edges = BTreeSet::new();
    for (from, source) in sources.iter().enumerate() {
        for import in &source.imports {
            let Some(to) = defined_in(&import.path, sources, &files, MOST_HOPS) else { continue };
            let is_own_room =
                sources[to].is_front_page() && source.module.starts_with(&sources[to].module);
            if to != from && !is_own_room {
                edges.insert((from, to));
            }
        }
    }
    edges
}

/// The file that defines the item at `path`.
fn defined_in(
    path: &[String],
    sources: &[Source],
    files: &BTreeMap<&[String], usize>,
    hops: usize,
) -> Option<usize> {
    let depth = (0..=path.len()).rev().find(|depth| files.contains_key(&path[..*depth]))?;
    let file = files[&path[..depth]];
    let Some(name) = path.get(depth).filter(|_| hops > 0) else { return Some(file) };
    let exports = sources[file].imports.iter();
    let mut exports = exports.filter(|import| import.name.as_ref() == Some(name));
    match exports.next() {
        Some(export) if export.path != path => {
            let mut further = export.path.clone();
            further.extend_from_slice(&path[depth + 1..]);
            defined_in(&further, sources, files, hops - 1)
        }
        _ => Some(file),
    }
}

/// The circles: sets of files in which each file reaches each other one through imports.
pub(super) fn circles(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let reach: Vec<_> = (0..count).map(|from| reached(from, edges)).collect();
    let mut circles = BTreeSet::new();
    for from in 0..count {
        let circle: Vec<_> = (0..count)
            .filter(|to| reach[from].contains(to) && reach[*to].contains(&from))
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached(from: usize, edges: &BTreeSet<(usize, usize)>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(at) = left.pop() {
        for &(_, to) in edges.range((at, 0)..=(at, usize::MAX)) {
            if reached.insert(to) {
                left.push(to);
            }
        }
    }
    reached
}
