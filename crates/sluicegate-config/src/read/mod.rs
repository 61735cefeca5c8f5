//! Documents out of texts.

mod explain;
mod file;
mod format;
mod json;
mod lenient;
mod toml;
mod tree;
mod value;

pub(crate) use self::file::text_of;
pub(crate) use self::format::Format;
pub use self::json::read_json;
pub use self::toml::read_toml;
pub(crate) use self::tree::Node;

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
