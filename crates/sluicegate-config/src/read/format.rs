use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::document::Document;
use crate::source::{Diagnostic, PolicyError};

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
        Self::new(|text| Ok((super::read_toml(text)?, Vec::new())), NO_RULES)
    }

    /// JSON, as read by [`read_json`](crate::read_json).
    #[cfg(feature = "json")]
    pub fn json() -> Self {
        Self::new(|text| Ok((super::read_json(text)?, Vec::new())), NO_RULES)
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
