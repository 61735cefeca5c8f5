use std::path::{Path, PathBuf};

use crate::document::Document;
use crate::read::Format;
use crate::source::{Diagnostic, PolicyError};

/// A policy file: its path and its format.
///
/// A path alone is enough for a file that ends in `.toml` or `.json`: functions take
/// `impl Into<PolicyFile>`, and every path is one.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    path: PathBuf,
    format: Option<Format>,
}

impl PolicyFile {
    /// The file at `path`, in the format of its extension.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), format: None }
    }

    /// Reads the file in this format, whatever its extension.
    #[must_use]
    pub fn format(mut self, format: impl Into<Format>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same file by its absolute path, so that a later change of the working directory does not matter,
    /// with a format that is known.
    pub(crate) fn resolved(self) -> Result<Self, Diagnostic> {
        let format = match self.format {
            Some(format) => format,
            None => Format::of(&self.path)?,
        };
        let path = std::path::absolute(&self.path);
        let path = path.map_err(|error| Diagnostic::new("", error.to_string()))?;
        Ok(Self { path, format: Some(format) })
    }

    /// Reads a text as the contents of this file. Relative paths in it start at the file's directory.
    pub(crate) fn read(&self, text: &str) -> Result<(Document, Vec<Diagnostic>), PolicyError> {
        let (mut document, warnings) = match &self.format {
            Some(format) => format.read(text)?,
            None => Format::of(&self.path)?.read(text)?,
        };
        if let (Some(geoip), Some(directory)) = (&mut document.geoip, self.path.parent()) {
            geoip.database = directory.join(&geoip.database).to_string_lossy().into_owned();
        }
        Ok((document, warnings))
    }
}

impl<P: AsRef<Path>> From<P> for PolicyFile {
    fn from(path: P) -> Self {
        Self::new(path.as_ref())
    }
}

impl From<&Self> for PolicyFile {
    fn from(file: &Self) -> Self {
        file.clone()
    }
}
