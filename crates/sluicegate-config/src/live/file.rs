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
pub(super) enum Seen {
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

    pub(super) fn look(&self) -> Seen {
        match text_of(self.path()) {
            Ok(text) => Seen::Text(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Seen::Missing,
            Err(error) => Seen::Unreadable(error.kind(), error.to_string()),
        }
    }

    /// The document in `seen`, and its policies.
    pub(super) fn compile(&self, seen: &Seen) -> Result<(Document, Policies), PolicyError> {
        let compiled = || {
            let document = self.read(seen)?;
            let policies = Policies::new(&document, &self.environment)?;
            Ok((document, policies))
        };
        compiled().map_err(|problems: PolicyError| problems.in_file(self.name()))
    }

    fn read(&self, seen: &Seen) -> Result<Document, PolicyError> {
        let text = match seen {
            Seen::Text(text) => text,
            Seen::Missing => return Err(Diagnostic::new("", "there is no such file").into()),
            Seen::Unreadable(_, error) => {
                return Err(Diagnostic::new("", format!("the file cannot be read: {error}")).into());
            }
        };
        let (document, warnings) = self.source.read(text)?;
        for warning in warnings {
            super::event::warn(&self.name(), &warning);
        }
        Ok(document)
    }

    pub(super) fn name(&self) -> String {
        self.path().display().to_string()
    }
}
