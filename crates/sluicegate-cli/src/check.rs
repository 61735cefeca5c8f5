//! `sluicegate check`

use std::process::ExitCode;

use clap::Args;
use sluicegate_config::{PolicyFile, check};

use crate::policies::PolicyFiles;

/// Reports what policy files say, and everything that is wrong with them. Exits with 1 if a file is not valid.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    files: PolicyFiles,
}

pub(crate) fn run(options: &Check) -> ExitCode {
    let mut is_valid = true;
    if let Some(path) = &options.files.rules {
        match check(PolicyFile::new(path)) {
            Ok(report) => println!("{report}"),
            Err(problems) => {
                eprintln!("{problems}");
                is_valid = false;
            }
        }
    }
    let files = PolicyFiles { envoy: options.files.envoy.clone(), rules: None };
    match files.read() {
        Ok(policies) => policies.describe().iter().for_each(|line| println!("{line}")),
        Err(problems) => {
            eprintln!("{problems}");
            is_valid = false;
        }
    }
    if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
