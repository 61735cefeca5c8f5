//! `sluicegate test`

mod expectation;
mod file;
mod plan;
mod run;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::policies::Kind;
use crate::terminal::{print, readable};
use crate::virtual_time::Rules;

/// Tests rules by requests at given times.
///
/// Compares what becomes of the requests of a case with what the case expects.
///
/// Time is virtual: a case of a day takes milliseconds, and nothing is sent over a network. Each difference is shown with
/// the request and the state of its limits. Exits with 1 if there is one, or if a file is not valid.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Files of cases in TOML or JSON.
    #[arg(value_name = "CASES", required = true)]
    cases: Vec<PathBuf>,
    /// The file of rules in TOML or JSON.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
}

pub(crate) fn run(options: &Test) -> Result<ExitCode, Box<dyn Error>> {
    Kind::Rules.expect(&options.rules)?;
    let rules = Rules::open(&options.rules)?;
    let names = rules.names();
    let read = options.cases.iter().map(|path| plan::read(path, &names));
    // A mistake in a file is told before any case runs.
    let cases: Vec<_> = read.collect::<Result<_, _>>()?;
    if rules.has_throttle() {
        say(&format!(
            "{}: its [throttle] is not asked: cases test the rules alone\n",
            options.rules.display()
        ))?;
    }
    let (mut passed, mut failed) = (0, 0);
    for case in cases.iter().flatten() {
        let outcomes = run::run(case, &rules);
        let is_passed = outcomes.differences.is_empty();
        let word = if is_passed { "passed" } else { "FAILED" };
        let requests = match outcomes.requests {
            1 => "1 request".to_owned(),
            several => format!("{several} requests"),
        };
        let mut lines = format!("{word}  {} ({requests})\n", case.name);
        let warnings = outcomes.warnings.iter().map(|warning| format!("warning: {warning}"));
        for line in outcomes.differences.iter().cloned().chain(warnings) {
            lines += &format!("  {line}\n");
        }
        say(&lines)?;
        *(if is_passed { &mut passed } else { &mut failed }) += 1;
    }
    if rules.loads() > 0 {
        say(IDLE)?;
    }
    say(&format!("{passed} passed, {failed} failed\n"))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const IDLE: &str =
    "cases with `while = { cpu = .. }` were asked, and the processors count as idle\n";

fn say(lines: &str) -> Result<(), Box<dyn Error>> {
    Ok(print(readable(lines).as_bytes())?)
}
