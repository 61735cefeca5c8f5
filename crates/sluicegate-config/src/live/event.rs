use std::fmt;
use std::path::PathBuf;

use super::changes::Changes;
use crate::source::{Diagnostic, PolicyError};

/// The result of a change.
///
/// With the feature `tracing`, each is a `tracing` event as well.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// New policies are in force.
    Reloaded(Changes),
    /// The file is not valid or cannot be read. The old policies stay in force.
    Refused(PolicyError),
    /// The file is missing. The old policies stay in force.
    Missing(PathBuf),
    /// A directory cannot be watched, for this reason. Another attempt follows each second.
    Unwatched(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded(changes) => write!(f, "policies reloaded: {changes}"),
            Self::Refused(problems) => write!(f, "policies not reloaded:\n{problems}"),
            Self::Missing(path) => {
                write!(f, "policies not reloaded: there is no file {}", path.display())
            }
            Self::Unwatched(reason) => write!(f, "policies not watched: {reason}"),
        }
    }
}

/// `is_end` says that policies are in force again after a file that was refused or missing. The end has the level of
/// the beginning.
#[cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, reason = "without the feature nobody is told")
)]
pub(super) fn report(event: &Event, is_end: bool) {
    #[cfg(feature = "tracing")]
    match event {
        Event::Reloaded(_) if !is_end => tracing::info!("{event}"),
        _ => tracing::warn!("{event}"),
    }
}

#[cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, reason = "without the feature nobody is told")
)]
pub(super) fn warn(file: &str, warning: &Diagnostic) {
    #[cfg(feature = "tracing")]
    tracing::warn!("{file}:{warning}");
}
