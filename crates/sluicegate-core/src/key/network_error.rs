use std::fmt;

use super::network::Problem;

/// An entry that is neither an address nor a network. The message names the entry and the mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    entry: String,
    problem: Problem,
}

impl NetworkError {
    pub(crate) fn new(entry: &str, problem: Problem) -> Self {
        Self { entry: entry.into(), problem }
    }

    /// The invalid entry, as it was written.
    pub fn entry(&self) -> &str {
        &self.entry
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, problem } = self;
        write!(f, "the network `{entry}` {problem}")
    }
}

impl std::error::Error for NetworkError {}
