use std::path::Path;

use serde::de::DeserializeOwned;

use super::{json, lenient, text_of, toml};
use crate::source::{Diagnostic, PolicyError, SourceMap};

/// Reads a file of another kind than policies, in TOML or JSON by its extension, with the same errors: all of them at once,
/// each with its line and column. The source map tells where the parts of the value are.
///
/// # Errors
///
/// Everything that is wrong with the form of the file, or that it cannot be read.
pub fn read_as<T: DeserializeOwned>(path: &Path) -> Result<(T, SourceMap), PolicyError> {
    let read = || {
        let tree = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => toml::tree,
            Some("json") => json::tree,
            _ => return Err(Diagnostic::new("", NO_FORMAT).into()),
        };
        let text = text_of(path)
            .map_err(|error| Diagnostic::new("", format!("the file cannot be read: {error}")))?;
        let (root, problems) = tree(&text)?;
        lenient::value(root, problems)
    };
    read().map_err(|error: PolicyError| error.in_file(path.display().to_string()))
}

const NO_FORMAT: &str =
    "the name of the file has to end in .toml or .json, which says how it is written";
