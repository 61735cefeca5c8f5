use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// A configuration that cannot work, and why: of templates, a lease, an address, a service, or an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(Cow<'static, str>);

impl ConfigError {
    pub(crate) fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        Self(problem.into())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigError {}
