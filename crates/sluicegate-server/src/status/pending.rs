//! What would change if files were read again now.

use std::time::Duration;

use super::document::PendingStatus;
use crate::policies::{Pending, Policies};

/// Files are compared this often at most, because it takes a while if they are large.
const EVERY: Duration = Duration::from_secs(5);

/// The most lines about changes, and about problems.
const MOST: usize = 100;

/// The last comparison, and when it was made.
#[derive(Debug, Default)]
pub(super) struct Compared(Option<(Duration, Vec<PendingStatus>)>);

impl Compared {
    /// Compares the files, unless that was done a moment ago. This reads files and may take a while.
    pub(super) fn at(&mut self, now: Duration, policies: &Policies) -> Vec<PendingStatus> {
        match &self.0 {
            Some((at, files)) if now.saturating_sub(*at) < EVERY => files.clone(),
            _ => {
                let files: Vec<_> = policies.pending().into_iter().map(PendingStatus::of).collect();
                self.0 = Some((now, files.clone()));
                files
            }
        }
    }
}

impl PendingStatus {
    fn of(pending: Pending) -> Self {
        let Pending { files, changes, problems } = pending;
        let (changes, left) = bounded(changes);
        let (problems, more) = bounded(problems);
        Self { files: files.to_owned(), changes, problems, more: left + more }
    }
}

fn bounded(lines: Vec<String>) -> (Vec<String>, u64) {
    let more = lines.len().saturating_sub(MOST) as u64;
    (lines.into_iter().take(MOST).collect(), more)
}
