//! Which directories to watch for changes of a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most symbolic links that are followed. More are a circle, as for the operating system.
const LINKS: usize = 40;

/// The directories that change when another file appears at `path`: its own, and those of every symbolic link on
/// the way to the file.
///
/// Only the last two names of the path may be links: the file, and its directory.
pub(super) fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        found.extend(path.parent().map(Path::to_owned));
        let Some((link, target)) = first_link(&path) else { break };
        found.extend(link.parent().map(Path::to_owned));
        // An absolute target replaces everything before it.
        let rest = path.strip_prefix(&link).unwrap_or(Path::new("")).to_owned();
        let mut next = link.parent().unwrap_or(Path::new("/")).join(target);
        if !rest.as_os_str().is_empty() {
            next.push(rest);
        }
        path = next;
    }
    found
}

fn first_link(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let candidates = [path.parent(), Some(path)];
    candidates
        .into_iter()
        .flatten()
        .find_map(|link| Some((link.to_owned(), fs::read_link(link).ok()?)))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_plain_file_has_one_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        let found = directories(&directory.path().join("policies.toml"));
        assert_eq!(found, [directory.path().to_owned()].into());
    }

    #[test]
    fn every_link_on_the_way_is_in_a_directory_that_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        for name in ["mounted", "mounted/..1", "elsewhere"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        fs::write(at("elsewhere/real.toml"), "").expect("a file");
        symlink("..1", at("mounted/..data")).expect("a link");
        symlink(at("elsewhere/real.toml"), at("mounted/..1/policies.toml")).expect("a link");
        symlink("..data/policies.toml", at("mounted/policies.toml")).expect("a link");
        let found = directories(&at("mounted/policies.toml"));
        for name in ["mounted", "mounted/..1", "elsewhere"] {
            assert!(found.contains(&at(name)), "{name}: {found:?}");
        }
    }

    #[test]
    fn links_that_lead_in_a_circle_come_to_an_end() {
        let root = tempfile::tempdir().expect("a directory");
        symlink("b.toml", root.path().join("a.toml")).expect("a link");
        symlink("a.toml", root.path().join("b.toml")).expect("a link");
        assert_eq!(directories(&root.path().join("a.toml")), [root.path().to_owned()].into());
    }
}
