//! Documents out of texts.

mod explain;
mod format;
mod json;
mod toml;

use serde_path_to_error::Segment;

pub(crate) use self::format::Format;
pub use self::json::read_json;
pub use self::toml::read_toml;

use crate::origin::Origin;
use crate::path::Path;
use crate::problem::Problem;

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
