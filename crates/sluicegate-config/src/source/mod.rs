//! Where the values of a document are in its text, and what is wrong with them.

mod error;
#[cfg(any(feature = "toml", feature = "json"))]
mod lines;
mod map;
mod path;
#[cfg_attr(
    not(any(feature = "toml", feature = "json")),
    expect(dead_code, reason = "only the readers of texts make trees")
)]
mod tree;

pub(crate) use self::error::MOST;
pub use self::error::{Diagnostic, PolicyError, SourceLocation};
#[cfg(any(feature = "toml", feature = "json"))]
pub(crate) use self::lines::Lines;
pub use self::map::SourceMap;
pub(crate) use self::path::DocumentPath;
#[cfg(any(feature = "toml", feature = "json"))]
pub(crate) use self::tree::{Data, Entry, Node, Step, Stub};
