use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// An election that cannot be held like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(Cow<'static, str>);

impl ConfigError {
    pub(super) fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        Self(problem.into())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigError {}
