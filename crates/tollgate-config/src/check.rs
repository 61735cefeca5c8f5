use std::fmt;
use std::path::Path;

use crate::compile::Policies;
use crate::document::Document;
use crate::environment::Environment;
use crate::problem::{Problem, Problems};
use crate::read::{read_json, read_toml};

/// Reads and compiles the file at `path`, without running anything: in TOML or JSON, by its extension.
///
/// # Errors
///
/// All that is wrong with the file, or that it cannot be read.
pub fn check(path: impl AsRef<Path>) -> Result<Report, Problems> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let checked = || {
        let document = read_file(path)?;
        Policies::new(&document, &Environment::new())?;
        Ok(Report { file: file.clone(), rules: document.rules.len() })
    };
    checked().map_err(|problems: Problems| problems.in_file(&file))
}

/// Reads the file at `path`; other files that it names are taken from its directory.
pub(crate) fn read_file(path: &Path) -> Result<Document, Problems> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::new("", format!("the file cannot be read: {error}")))?;
    let mut document = match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => read_toml(&text)?,
        Some("json") => read_json(&text)?,
        _ => return Err(Problem::new("", "the file's name has to end in .toml or .json").into()),
    };
    if let (Some(places), Some(directory)) = (&mut document.places, path.parent()) {
        places.database = directory.join(&places.database).to_string_lossy().into_owned();
    }
    Ok(document)
}

/// What stands in a file that [`check`] has found nothing wrong with.
#[derive(Debug, Clone)]
pub struct Report {
    file: String,
    rules: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} rules", self.file, self.rules)
    }
}
