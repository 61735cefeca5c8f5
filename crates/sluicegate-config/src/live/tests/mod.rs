mod changing;
mod halves;
#[cfg(feature = "tracing")]
mod log;
mod model;
mod pending;
mod refusing;
mod threads;
mod watching;

use std::path::PathBuf;

use tempfile::TempDir;

use super::Live;
use crate::compile::Policies;
use crate::environment::Environment;

/// A document with one rule: `count` requests a minute for all clients together.
fn everybody(count: u64) -> String {
    format!("[[rules]]\nname = \"all\"\nkey = \"global\"\nlimits = [\"{count}/minute\"]\n")
}

/// A directory of its own, with a file of policies.
struct Place {
    directory: TempDir,
}

impl Place {
    fn empty() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn with(text: &str) -> Self {
        let place = Self::empty();
        place.write(text);
        place
    }

    fn file(&self) -> PathBuf {
        self.at("policies.toml")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the file in place.
    fn write(&self, text: &str) {
        std::fs::write(self.file(), text).expect("a file");
    }

    /// Writes another file and renames it.
    fn exchange(&self, text: &str) {
        std::fs::write(self.at(".policies.toml~"), text).expect("a file");
        std::fs::rename(self.at(".policies.toml~"), self.file()).expect("another name");
    }

    /// Makes a directory with a file of policies in it.
    #[cfg(unix)]
    fn version(&self, name: &str, count: u64) {
        std::fs::create_dir(self.at(name)).expect("a directory");
        std::fs::write(self.at(name).join("policies.toml"), everybody(count)).expect("a file");
    }

    #[cfg(unix)]
    fn link(&self, target: &str, name: &str) {
        std::os::unix::fs::symlink(target, self.at(name)).expect("a link");
    }

    fn open(&self) -> Live {
        Live::open(self.file(), Environment::new()).expect("valid policies")
    }
}

fn policies(text: &str) -> Policies {
    let document = crate::read_toml(text).expect("a document");
    Policies::new(&document, &Environment::new()).expect("valid policies")
}

/// The limits that are in force, in words.
fn in_force(live: &Live) -> Vec<String> {
    let mut limits = Vec::new();
    sluicegate_core::rule::KnownLimits::each_limit(live, &mut |limit| {
        limits.push(limit.to_string());
    });
    limits
}

/// Whether the only limit in force admits `count` a minute.
fn admits(live: &Live, count: u64) -> bool {
    matches!(&in_force(live)[..], [limit] if limit.starts_with(&format!("{count}/minute")))
}
