use std::path::Path;

use crate::document::Document;
use crate::problem::{Problem, Problems};
use crate::read::{read_json, read_toml};

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
