//! Documents from texts.
//!
//! All problems are found in one round. TOML and JSON become one tree of values that know their places
//! (`tree`). The types of serde say what does not fit and at which path (`error`). Something that fits is put there
//! instead, rule by rule, and the rest is read (`lenient`). Then errors of meaning are found by the same
//! paths, except for those that depend on a replaced value. The length of the text, the number of reported
//! problems and the number of values that are read again are bounded.

#[cfg(any(feature = "toml", feature = "json"))]
mod deserializer;
#[cfg(any(feature = "toml", feature = "json"))]
mod error;
mod file;
#[cfg(feature = "json")]
mod json;
#[cfg(any(feature = "toml", feature = "json"))]
mod lenient;
#[cfg(feature = "toml")]
mod toml;
#[cfg(all(feature = "toml", feature = "json"))]
mod typed;

pub use self::file::text_of;
#[cfg(feature = "json")]
pub use self::json::read_json;
#[cfg(feature = "toml")]
pub use self::toml::read_toml;
#[cfg(all(feature = "toml", feature = "json"))]
pub use self::typed::read_as;

use crate::source::{Diagnostic, PolicyError};

/// The text without a byte order mark, which some editors write at the start of a file.
///
/// # Errors
///
/// Fails if the text is longer than 32 MiB.
pub fn within_bounds(text: &str) -> Result<&str, PolicyError> {
    if text.len() > file::LONGEST {
        let what = format!("this is no document: {}", file::too_long_in_words());
        return Err(Diagnostic::new("", what).into());
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
