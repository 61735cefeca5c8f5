//! `sluicegate check`

mod capacity;
mod domain;
mod proxied;
mod request;
mod rules;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sluicegate_config::reader::text_of;
use sluicegate_server::Policies;

use self::request::Example;
use crate::policies::{Kind, PolicyFiles};
use crate::terminal::{print, readable};

/// Reports what policy files say, and everything that is wrong with them.
///
/// Errors, and what is probably a mistake, come with line and column. If a request is given, the report says what it
/// would be charged. Exits with 1 if a file is not valid.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    files: PolicyFiles,
    #[command(flatten)]
    example: Example,
}

/// A file that is not valid, or a report that cannot be written. It was reported.
#[derive(Debug)]
struct Invalid;

pub(crate) fn run(options: &Check) -> ExitCode {
    let Check { files, example } = options;
    let rules = files.rules.iter().map(|path| {
        Kind::Rules.expect(path).map_err(report)?;
        rules::check(path, example)
    });
    let domains = files.envoy.iter().map(|path| each_domain(path, example));
    let capacity = files.capacity.iter().map(|path| {
        Kind::Capacity.expect(path).map_err(report)?;
        capacity::check(path)
    });
    let checked: Vec<_> =
        rules.chain(capacity).chain(domains).chain([together(&files.envoy)]).collect();
    if checked.into_iter().all(|checked| checked.is_ok()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Checks a file of Envoy's service, or each file of a directory.
fn each_domain(path: &Path, example: &Example) -> Result<(), Invalid> {
    Kind::Envoy.expect(path).map_err(report)?;
    let files = Policies::files(path).map_err(report)?;
    let checked: Vec<_> = files.iter().map(|file| domain::check(file, example)).collect();
    checked.into_iter().collect()
}

/// Checks what only all files together can have wrong: two with the same domain.
fn together(files: &[PathBuf]) -> Result<(), Invalid> {
    if files.is_empty() {
        return Ok(());
    }
    let read = files.iter().try_fold(Policies::new(), Policies::envoy);
    match read {
        Err(error) if error.is_of_several_files() => Err(report(error)),
        // Everything else was reported with its file.
        _ => Ok(()),
    }
}

/// The text of a file.
fn text(path: &Path) -> Result<String, Invalid> {
    text_of(path).map_err(|error| {
        report(format_args!("{}: the file cannot be read: {error}", path.display()))
    })
}

/// Says a line or more on standard output. What is quoted of a file does nothing to the terminal.
fn say(what: impl Display) -> Result<(), Invalid> {
    let text = readable(&format!("{what}\n"));
    print(text.as_bytes()).map_err(|error| report(format_args!("cannot write the report: {error}")))
}

/// Says what is wrong.
fn report(problems: impl Display) -> Invalid {
    eprintln!("{}", readable(&problems.to_string()));
    Invalid
}
