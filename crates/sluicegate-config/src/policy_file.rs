use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::Document;
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

/// The format of a policy file: how its text becomes a [`Document`].
///
/// Files with the extension `.toml` or `.json` need no explicit format. Other formats are named with
/// [`PolicyFile::format`](crate::PolicyFile::format), such as the `Descriptors` of the module `envoy`.
#[derive(Clone)]
pub struct Format {
    read: Arc<Read>,
    no_rules: &'static str,
}

type Read = dyn Fn(&str) -> Result<(Document, Vec<Diagnostic>), PolicyError> + Send + Sync;

#[cfg(any(feature = "toml", feature = "json"))]
const NO_RULES: &str =
    "there are no rules: say `rules = []` (in JSON `\"rules\": []`) if there are to be none";

impl Format {
    /// A format that `read` reads into a document and warnings.
    ///
    /// A document without rules must have a [mark](crate::SourceMap::mark) for `rules` if the text says
    /// explicitly that there are none. Otherwise the text counts as empty or incomplete, and is an error with
    /// the message `no_rules`.
    pub fn new(
        read: impl Fn(&str) -> Result<(Document, Vec<Diagnostic>), PolicyError> + Send + Sync + 'static,
        no_rules: &'static str,
    ) -> Self {
        Self { read: Arc::new(read), no_rules }
    }

    /// TOML, as read by [`read_toml`](crate::read_toml).
    #[cfg(feature = "toml")]
    pub fn toml() -> Self {
        Self::new(|text| Ok((crate::read_toml(text)?, Vec::new())), NO_RULES)
    }

    /// JSON, as read by [`read_json`](crate::read_json).
    #[cfg(feature = "json")]
    pub fn json() -> Self {
        Self::new(|text| Ok((crate::read_json(text)?, Vec::new())), NO_RULES)
    }

    /// The format of the file at `path`, by its extension.
    pub(crate) fn of(path: &Path) -> Result<Self, Diagnostic> {
        match path.extension().and_then(|extension| extension.to_str()) {
            #[cfg(feature = "toml")]
            Some("toml") => Ok(Self::toml()),
            #[cfg(feature = "json")]
            Some("json") => Ok(Self::json()),
            #[cfg(not(feature = "toml"))]
            Some("toml") => Err(absent("toml")),
            #[cfg(not(feature = "json"))]
            Some("json") => Err(absent("json")),
            _ => {
                let what = "the file's name has to end in .toml or .json, or the code has to name its \
                            format with `PolicyFile::format`";
                Err(Diagnostic::new("", what))
            }
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the text. A text without rules is an error too, unless it says explicitly
    /// that there are none: a program that writes a file in place empties it first, and limits must not be
    /// lifted meanwhile.
    pub fn read(&self, text: &str) -> Result<(Document, Vec<Diagnostic>), PolicyError> {
        let (document, warnings) = (self.read)(text)?;
        // Comments may contain any word, so this looks at the parsed document.
        if document.rules.is_empty() && !document.source.says("rules") {
            return Err(Diagnostic::new("", self.no_rules).into());
        }
        Ok((document, warnings))
    }
}

#[cfg(not(all(feature = "toml", feature = "json")))]
fn absent(feature: &str) -> Diagnostic {
    Diagnostic::new("", crate::absent::needs(feature))
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").finish_non_exhaustive()
    }
}
