//! For crates that read policies in another format.
//!
//! Such a crate builds a [`Document`](crate::Document), [marks](crate::Origin::mark) where its parts are in the
//! text, and offers the reader as a [`Format`](crate::Format).

pub use crate::path::DocumentPath;
pub use crate::problem::MOST as MOST_PROBLEMS;
pub use crate::read::within_bounds as text_within_bounds;
