use std::error::Error;
use std::fmt;
use std::path::Path;

/// Why a server does not start.
#[derive(Debug)]
pub struct ServerError {
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ServerError {
    /// A reason, as a sentence.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    pub(crate) fn because(
        what: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { what: what.into(), source: Some(source.into()) }
    }

    pub(super) fn file(
        path: &Path,
        what: &str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::because(format!("{}: {what}", path.display()), source)
    }
}

/// With the cause, because that is what the operator has to mend.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl Error for ServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// An error and its causes, one after the other.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// Shows an error with its causes.
pub(crate) struct Causes<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        causes(self.0).enumerate().try_for_each(|(at, cause)| match at {
            0 => write!(f, "{cause}"),
            _ => write!(f, ": {cause}"),
        })
    }
}
