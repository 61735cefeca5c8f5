//! The documents say what is true: files, features, names and tests that they name exist, and
//! the public items of the crates are those that are meant to be.

mod guide;
mod hazards;
mod links;
mod messages;
mod open_types;
mod readme;
mod root_names;

use std::path::{Path, PathBuf};

/// The folder of the whole project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
