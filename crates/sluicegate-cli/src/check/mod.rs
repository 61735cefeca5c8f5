//! `sluicegate check`

mod domain;
mod request;
mod rules;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sluicegate_server::{Policies, PoliciesError};

use self::request::Example;
use crate::policies::PolicyFiles;

/// Reports what policy files say, what is wrong with them and what is probably a mistake, each with line and column.
/// Tells what a request would be charged, if one is given. Exits with 1 if a file is not valid.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    files: PolicyFiles,
    #[command(flatten)]
    example: Example,
}

/// A file that is not valid. It was reported.
#[derive(Debug)]
struct Invalid;

pub(crate) fn run(options: &Check) -> ExitCode {
    let Check { files, example } = options;
    let rules = files.rules.iter().map(|path| rules::check(path, example));
    let domains = files.envoy.iter().map(|path| each_domain(path, example));
    let checked: Vec<_> = rules.chain(domains).chain([together(&files.envoy)]).collect();
    if checked.into_iter().all(|checked| checked.is_ok()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Checks a file of Envoy's service, or each file of a directory.
fn each_domain(path: &Path, example: &Example) -> Result<(), Invalid> {
    let files = Policies::files(path).map_err(|error| report(&error))?;
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
        Err(error) if error.is_of_several_files() => Err(report(&error)),
        // Everything else was reported with its file.
        _ => Ok(()),
    }
}

fn report(error: &PoliciesError) -> Invalid {
    eprintln!("{error}");
    Invalid
}
