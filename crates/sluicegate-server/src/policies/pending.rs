//! What would change if files were read again.

use std::collections::BTreeSet;

use sluicegate_config::Changes;

use super::{Policies, PoliciesError};

/// What would change if files were read again.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Which files.
    pub(crate) files: &'static str,
    /// One line for each change.
    pub(crate) changes: Vec<String>,
    /// What keeps the files from coming into force, one line for each problem.
    pub(crate) problems: Vec<String>,
}

impl Policies {
    /// Compares files with the policies in force. Nothing comes into force.
    pub(crate) fn pending(&self) -> Vec<Pending> {
        let rules = self.live().map(|live| {
            let changes = live.pending().map_err(PoliciesError::from);
            Pending::of("rules", changes.map(|changes| words(&changes)))
        });
        let domains = (!self.domains.is_empty())
            .then(|| Pending::of("files of Envoy's rate limit service", self.domains.pending()));
        rules.into_iter().chain(domains).collect()
    }
}

impl Pending {
    fn of(files: &'static str, changes: Result<Vec<String>, PoliciesError>) -> Self {
        let (changes, problems) = match changes {
            Ok(changes) => (changes, Vec::new()),
            Err(error) => (Vec::new(), error.to_string().lines().map(str::to_owned).collect()),
        };
        Self { files, changes, problems }
    }
}

fn words(changes: &Changes) -> Vec<String> {
    let named = |what: &'static str, names: &[String]| {
        names.iter().map(move |name| format!("{what} {name}")).collect::<Vec<_>>()
    };
    let told: BTreeSet<_> = changes.limits.iter().map(|limit| &limit.name).collect();
    let others = changes.changed.iter().filter(|name| !told.contains(name));
    let mut words = named("added", &changes.added);
    words.extend(named("removed", &changes.removed));
    words.extend(changes.limits.iter().map(|limit| format!("changed {limit}")));
    words.extend(others.map(|name| format!("changed {name}")));
    words.extend(changes.settings.iter().map(|setting| format!("changed {setting}")));
    words
}
