//! The command of this crate.

use std::path::Path;

pub(crate) use sluicegate_tests::command::{PATIENCE, Sluicegate};

pub(crate) const FILE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 4000000000 }
";

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sluicegate"))
}

/// `sluicegate serve` with [`FILE`].
pub(crate) fn serve(more: &[&str]) -> Sluicegate {
    serve_with(FILE, more)
}

pub(crate) fn serve_with(text: &str, more: &[&str]) -> Sluicegate {
    Sluicegate::start(program(), text, more)
}
