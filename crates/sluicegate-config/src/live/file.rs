//! The file that policies are read from.

use std::io;
use std::path::Path;

use crate::compile::Policies;
use crate::document::Document;
use crate::environment::Environment;
use crate::policy_file::PolicyFile;
use crate::read::text_of;
use crate::source::{Diagnostic, PolicyError};

pub(super) struct File {
    source: PolicyFile,
    environment: Environment,
}

/// The contents found at the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Contents {
    Text(String),
    Missing,
    Unreadable(io::ErrorKind, String),
}

impl File {
    pub(super) fn new(source: PolicyFile, environment: Environment) -> Result<Self, PolicyError> {
        let name = source.path().display().to_string();
        let source = source.resolved();
        let source = source.map_err(|problem| PolicyError::from(problem).in_file(name))?;
        Ok(Self { source, environment })
    }

    pub(super) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(super) fn contents(&self) -> Contents {
        match text_of(self.path()) {
            Ok(text) => Contents::Text(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Contents::Missing,
            Err(error) => Contents::Unreadable(error.kind(), error.to_string()),
        }
    }

    /// The document in `contents`, and its policies.
    pub(super) fn compile(&self, contents: &Contents) -> Result<(Document, Policies), PolicyError> {
        let compiled = || {
            let document = self.read(contents)?;
            let policies = Policies::new(&document, &self.environment)?;
            Ok((document, policies))
        };
        compiled().map_err(|problems: PolicyError| problems.in_file(self.name()))
    }

    fn read(&self, contents: &Contents) -> Result<Document, PolicyError> {
        let text = match contents {
            Contents::Text(text) => text,
            Contents::Missing => return Err(Diagnostic::new("", "there is no such file").into()),
            Contents::Unreadable(_, error) => {
                return Err(Diagnostic::new("", format!("the file cannot be read: {error}")).into());
            }
        };
        let (document, warnings) = self.source.read(text)?;
        #[cfg(feature = "tracing")]
        warnings.iter().for_each(|warning| tracing::warn!("{}:{warning}", self.name()));
        #[cfg(not(feature = "tracing"))]
        let _ = warnings;
        Ok(document)
    }

    pub(super) fn name(&self) -> String {
        self.path().display().to_string()
    }
}
