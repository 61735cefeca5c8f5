use std::fmt;
use std::path::Path;

use sluicegate_config::{PolicyError, WatchError};

/// What is wrong with the files of a service: one line for each problem, with its file, line and column where they
/// are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoliciesError {
    lines: String,
    several: bool,
}

impl PoliciesError {
    fn of(lines: String) -> Self {
        Self { lines, several: false }
    }

    /// Whether each file is valid by itself: two of them have the same domain.
    pub fn is_of_several_files(&self) -> bool {
        self.several
    }

    pub(super) fn same_domain(self) -> Self {
        Self { several: true, ..self }
    }

    pub(super) fn second_rules(path: &Path) -> Self {
        let path = path.display();
        Self::of(format!("{path}: there is a file with rules already: put all rules into one file"))
    }

    pub(super) fn second_capacity(path: &Path) -> Self {
        let path = path.display();
        Self::of(format!(
            "{path}: there is a file of capacity already: put all capacities into one file"
        ))
    }

    pub(super) fn unreadable(path: &Path, why: &str) -> Self {
        Self::of(format!("{}: {why}", path.display()))
    }

    pub(super) fn unwatched(error: WatchError) -> Self {
        Self::of(error.to_string())
    }

    /// All of these.
    pub(super) fn all(errors: impl IntoIterator<Item = PolicyError>) -> Self {
        let lines: Vec<_> = errors.into_iter().map(|error| error.to_string()).collect();
        Self::of(lines.join("\n"))
    }

    /// All of these.
    pub(super) fn together(errors: &[Self]) -> Self {
        let lines: Vec<_> = errors.iter().map(|error| error.lines.as_str()).collect();
        Self::of(lines.join("\n"))
    }
}

impl From<PolicyError> for PoliciesError {
    fn from(error: PolicyError) -> Self {
        Self::of(error.to_string())
    }
}

impl fmt::Display for PoliciesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines)
    }
}

impl std::error::Error for PoliciesError {}
