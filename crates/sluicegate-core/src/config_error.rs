use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Settings that cannot work, and why: the text names the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(Cow<'static, str>);

impl ConfigError {
    /// An error with this text, for stores and layers of your own.
    pub fn new(sentence: impl Into<Cow<'static, str>>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigError {}
