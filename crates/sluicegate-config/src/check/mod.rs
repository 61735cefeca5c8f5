//! Looking at a file without running anything.

mod report;
mod warnings;

use std::path::Path;

pub use self::report::{Report, RuleReport};

use crate::compile::Policies;
use crate::document::Document;
use crate::environment::Environment;
use crate::live::Changes;
use crate::problem::{Problem, Problems};
use crate::read::{Format, text_of};

/// Reads and compiles the file at `path`, without running anything: in TOML, JSON or Envoy's YAML, by its
/// extension.
///
/// What only the service can provide, such as functions that the file names, is taken to be there, and
/// stands in the [`Report`].
///
/// ```no_run
/// match sluicegate_config::check("policies.toml") {
///     Ok(report) => println!("{report}"),
///     Err(problems) => eprintln!("{problems}"),
/// }
/// ```
///
/// # Errors
///
/// All that is wrong with the file, or that it cannot be read.
pub fn check(path: impl AsRef<Path>) -> Result<Report, Problems> {
    look(path.as_ref()).map(|looked| looked.report)
}

/// Checks the file at `path` as [`check`] does, and tells what it changes of the file at `before`: what a
/// reload would say, such as which limits get another period and begin afresh.
///
/// ```no_run
/// match sluicegate_config::check_change("policies.toml", "policies.new.toml") {
///     Ok(report) => println!("{report}"),
///     Err(problems) => eprintln!("{problems}"),
/// }
/// ```
///
/// # Errors
///
/// All that is wrong with one of the files, or that it cannot be read.
pub fn check_change(before: impl AsRef<Path>, path: impl AsRef<Path>) -> Result<Report, Problems> {
    let (old, new) = (look(before.as_ref())?, look(path.as_ref())?);
    let changes = Changes::between(
        (Some(&old.document), &old.policies),
        (Some(&new.document), &new.policies),
    );
    Ok(new.report.with(changes))
}

/// A file that nothing is wrong with.
struct Looked {
    document: Document,
    policies: Policies,
    report: Report,
}

fn look(path: &Path) -> Result<Looked, Problems> {
    let file = path.display().to_string();
    let looked = || {
        let format = Format::of(path)?;
        let text = text_of(path)
            .map_err(|error| Problem::new("", format!("the file cannot be read: {error}")))?;
        let (document, idle) = format.read(&text, path)?;
        let policies = Policies::new(&document, &Environment::assuming())?;
        let report = Report::new(&file, &document, &policies, idle);
        Ok(Looked { document, policies, report })
    };
    looked().map_err(|problems: Problems| problems.in_file(&file))
}
