//! Checks licences, bans, sources and advisories of the dependencies, with `deny.toml`.

use crate::step::{Failure, Step};
use crate::tools::Tool;

/// The releases of cargo-deny that understand `deny.toml`.
const DENY: Tool = Tool::new("deny", "~0.20.2");

/// Checks the dependencies. Returns what could not be checked, and why.
pub(crate) fn check_dependencies() -> Result<Vec<String>, Failure> {
    let Some(tool) = DENY.installed() else {
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
    // Offline, nothing else can be fetched.
    fetch.args(["fetch", "db", "index"]);
    if let Err(failure) = Step::new("advisory database", fetch).fetch() {
        return Ok(vec![format!(
            "advisories about the dependencies, because their database could not be fetched \
             ({failure})"
        )]);
    }
    let mut command = tool.command();
    // The database is there, so the network need not be.
    command.args(["--offline", "check", "advisories"]);
    Step::new("advisories", command).run()?;
    Ok(Vec::new())
}
