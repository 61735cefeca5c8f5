//! Checks a file without running anything.

mod report;
mod warnings;

pub use self::report::{Report, RuleReport};

use crate::compile::Policies;
use crate::document::Document;
use crate::environment::Environment;
use crate::live::Changes;
use crate::policy_file::PolicyFile;
use crate::read::text_of;
use crate::source::{Diagnostic, PolicyError};

/// Reads and compiles a policy file without running anything.
///
/// Anything that only the service can provide, such as a function that the file names, is assumed to exist,
/// and listed in the [`Report`].
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
/// Everything that is wrong with the file, or that it cannot be read.
pub fn check(file: impl Into<PolicyFile>) -> Result<Report, PolicyError> {
    look(&file.into()).map(|looked| looked.report)
}

/// Checks a file like [`check`], and reports what it changes compared to the file `before`. A reload would
/// report the same, such as which limits have a new period and start from zero.
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
/// Everything that is wrong with one of the files, or that it cannot be read.
pub fn check_change(
    before: impl Into<PolicyFile>,
    file: impl Into<PolicyFile>,
) -> Result<Report, PolicyError> {
    let (old, new) = (look(&before.into())?, look(&file.into())?);
    let changes = Changes::between(
        (Some(&old.document), &old.policies),
        (Some(&new.document), &new.policies),
    );
    Ok(new.report.with(changes))
}

/// A valid file.
struct Looked {
    document: Document,
    policies: Policies,
    report: Report,
}

fn look(source: &PolicyFile) -> Result<Looked, PolicyError> {
    let file = source.path().display().to_string();
    let looked = || {
        let text = text_of(source.path())
            .map_err(|error| Diagnostic::new("", format!("the file cannot be read: {error}")))?;
        let (document, idle) = source.read(&text)?;
        let policies = Policies::new(&document, &Environment::assuming())?;
        let report = Report::new(&file, &document, &policies, idle);
        Ok(Looked { document, policies, report })
    };
    looked().map_err(|problems: PolicyError| problems.in_file(&file))
}
