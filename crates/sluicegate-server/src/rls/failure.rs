use std::fmt;

use sluicegate_config::envoy::service::BadRequest;

use crate::undecided::Undecided;

/// Why a request is not decided.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Failure {
    /// The request makes no sense.
    Bad(BadRequest),
    /// The store could not decide, and the service refuses requests then.
    Undecided(Undecided),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(bad) => bad.fmt(f),
            Self::Undecided(undecided) => undecided.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}

impl From<BadRequest> for Failure {
    fn from(bad: BadRequest) -> Self {
        Self::Bad(bad)
    }
}

impl From<Undecided> for Failure {
    fn from(undecided: Undecided) -> Self {
        Self::Undecided(undecided)
    }
}
