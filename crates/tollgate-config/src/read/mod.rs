//! Documents out of texts.

mod explain;
mod file;
mod format;
mod json;
mod toml;

use serde_path_to_error::Segment;

pub(crate) use self::file::text_of;
pub(crate) use self::format::Format;
pub use self::json::read_json;
pub use self::toml::read_toml;

use crate::origin::Origin;
use crate::path::Path;
use crate::problem::{Problem, Problems};

/// The text without a byte order mark, which some editors begin a file with; unless it is longer than any
/// that is read.
pub(crate) fn within_bounds(text: &str) -> Result<&str, Problems> {
    if text.len() > file::LONGEST {
        let what = format!("this is no document: {}", file::too_long_in_words());
        return Err(Problem::new("", what).into());
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// What a deserializer has to say of the value that stands under `segments`.
fn misfit(origin: &Origin, segments: &serde_path_to_error::Path, message: &str) -> Problem {
    let segments: Vec<_> = segments.iter().collect();
    with_path(&Path::Root, &segments, |path| {
        let sentence = explain::sentence(message);
        match explain::is_about_name(message) {
            true => origin.problem_with_name(path, sentence),
            false => origin.problem(path, sentence),
        }
    })
}

fn with_path<O>(parent: &Path<'_>, segments: &[&Segment], then: impl FnOnce(&Path<'_>) -> O) -> O {
    match segments {
        [] => then(parent),
        [Segment::Map { key }, rest @ ..] => with_path(&parent.name(key), rest, then),
        [Segment::Seq { index }, rest @ ..] => with_path(&parent.index(*index), rest, then),
        [Segment::Enum { .. } | Segment::Unknown, rest @ ..] => with_path(parent, rest, then),
    }
}
