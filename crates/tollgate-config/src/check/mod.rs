//! Looking at a file without running anything.

mod report;
mod warnings;

use std::path::Path;

pub use self::report::{Report, RuleReport};

use crate::compile::Policies;
use crate::environment::Environment;
use crate::problem::{Problem, Problems};
use crate::read::{Format, text_of};

/// Reads and compiles the file at `path`, without running anything: in TOML, JSON or Envoy's YAML, by its
/// extension.
///
/// What only the service can provide, such as functions that the file names, is taken to be there, and
/// stands in the [`Report`].
///
/// ```no_run
/// match tollgate_config::check("policies.toml") {
///     Ok(report) => println!("{report}"),
///     Err(problems) => eprintln!("{problems}"),
/// }
/// ```
///
/// # Errors
///
/// All that is wrong with the file, or that it cannot be read.
pub fn check(path: impl AsRef<Path>) -> Result<Report, Problems> {
    let path = path.as_ref();
    let file = path.display().to_string();
    let checked = || {
        let format = Format::of(path)?;
        let text = text_of(path)
            .map_err(|error| Problem::new("", format!("the file cannot be read: {error}")))?;
        let (document, idle) = format.read(&text, path)?;
        let policies = Policies::new(&document, &Environment::assuming())?;
        Ok(Report::new(&file, &document, &policies, idle))
    };
    checked().map_err(|problems: Problems| problems.in_file(&file))
}
