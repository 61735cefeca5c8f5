//! For crates that read policies in another format.
//!
//! Such a crate builds a [`Document`](crate::Document), [marks](crate::SourceMap::mark) where its parts are in the
//! text, and offers the reader as a [`Format`](crate::Format).

pub use crate::read::{text_of, within_bounds as text_within_bounds};
pub use crate::source::DocumentPath;
pub use crate::source::MOST as MOST_DIAGNOSTICS;
