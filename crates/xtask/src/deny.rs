//! What the dependencies may be: licences, bans, sources, advisories, as `deny.toml` says.

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo, root};

/// The releases of cargo-deny that understand `deny.toml`.
const VERSION: &str = "~0.20.2";

/// Where cargo-deny is installed when the machine has none: two minutes on two cores, once.
const TOOLS: &str = "target/tools";

/// Checks the dependencies, and returns what could not be checked, and why.
pub(crate) fn check_dependencies() -> Result<Vec<String>, Failure> {
    let Some(tool) = installed().or_else(install) else {
        return Ok(vec![
            "licences, bans, sources and advisories of the dependencies, \
             because cargo-deny is not installed and cannot be installed here"
                .to_owned(),
        ]);
    };

    let mut command = tool.command();
    command.args(["check", "bans", "licenses", "sources"]);
    Step::new("dependencies", command).run()?;

    let mut fetch = tool.command();
    fetch.args(["fetch", "db"]);
    if let Err(failure) = Step::new("advisory database", fetch).run() {
        return Ok(vec![format!(
            "advisories about the dependencies, because their database could not be fetched \
             ({failure})"
        )]);
    }
    let mut command = tool.command();
    command.args(["check", "advisories"]);
    Step::new("advisories", command).run()?;
    Ok(Vec::new())
}

/// A cargo-deny that can be run.
enum Tool {
    OfTheMachine,
    OfThisRepository,
}

impl Tool {
    fn command(&self) -> Command {
        match self {
            Self::OfTheMachine => cargo(["deny"]),
            Self::OfThisRepository => {
                let mut command = Command::new(root().join(TOOLS).join("bin/cargo-deny"));
                command.current_dir(root());
                command
            }
        }
    }

    fn runs(&self) -> bool {
        let mut command = self.command();
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn installed() -> Option<Tool> {
    [Tool::OfTheMachine, Tool::OfThisRepository].into_iter().find(Tool::runs)
}

fn install() -> Option<Tool> {
    let mut command = cargo(["install", "--locked", "cargo-deny", "--version", VERSION]);
    command.args(["--root", TOOLS]);
    match Step::new("cargo-deny is missing, installing it", command).run() {
        Ok(()) => Some(Tool::OfThisRepository),
        Err(failure) => {
            eprintln!("{failure}");
            None
        }
    }
}
