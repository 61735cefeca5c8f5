use std::path::Path;

use super::{read_json, read_toml};
use crate::document::Document;
use crate::envoy::{Descriptors, read_envoy_with_warnings};
use crate::problem::{Problem, Problems};

/// In what a document is written.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Toml,
    Json,
    Envoy(Box<Descriptors>),
}

impl Format {
    /// The format of the file at `path`, by its extension.
    pub(crate) fn of(path: &Path) -> Result<Self, Problem> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Ok(Self::Toml),
            Some("json") => Ok(Self::Json),
            Some("yaml" | "yml") => Ok(Self::Envoy(Box::default())),
            _ => {
                let what =
                    "the file's name has to end in .toml, .json, or .yaml for Envoy's format";
                Err(Problem::new("", what))
            }
        }
    }

    /// Reads the text of the file at `path`, from whose directory other files are taken that it names; and
    /// what stands in it and changes nothing. A text without rules has to say that there are none: the
    /// parsed document is asked, since a comment may hold any word.
    pub(crate) fn read(
        &self,
        text: &str,
        path: &Path,
    ) -> Result<(Document, Vec<Problem>), Problems> {
        let (mut document, warnings) = match self {
            Self::Toml => (read_toml(text)?, Vec::new()),
            Self::Json => (read_json(text)?, Vec::new()),
            Self::Envoy(descriptors) => read_envoy_with_warnings(text, descriptors)?,
        };
        if document.rules.is_empty() && !document.origin.says("rules") {
            // A program that writes a file in place empties it first: limits hold meanwhile.
            return Err(Problem::new("", self.nothing_said()).into());
        }
        if let (Some(geoip), Some(directory)) = (&mut document.geoip, path.parent()) {
            geoip.database = directory.join(&geoip.database).to_string_lossy().into_owned();
        }
        Ok((document, warnings))
    }

    fn nothing_said(&self) -> &'static str {
        match self {
            Self::Envoy(_) => {
                "no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits"
            }
            Self::Toml | Self::Json => {
                "there are no rules: say `rules = []` (in JSON `\"rules\": []`) if there are to be none"
            }
        }
    }
}
