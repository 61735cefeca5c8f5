//! Tests against programs that users run, and that are too large for the other tests.

use std::process::Command;

use crate::servers::{apt_get, find, user_is_root};
use crate::step::{Failure, Step, cargo};

/// A program, and the Debian and Ubuntu package that contains it.
struct Program {
    /// Its names. One of them is enough.
    names: &'static [&'static str],
    package: &'static str,
}

const CHROMIUM: Program =
    Program { names: &["chromium", "chromium-browser", "google-chrome"], package: "chromium" };

/// Installs what is missing, and runs the tests.
pub(crate) fn test() -> Result<(), Failure> {
    let missing = [CHROMIUM].into_iter().filter(|program| !program.is_there());
    let packages: Vec<_> = missing.map(|program| program.package).collect();
    if !packages.is_empty() {
        install(&packages)?;
    }
    let mut command = cargo(["test", "--package", "sluicegate-counterparts", "--no-fail-fast"]);
    // The programs. Browsers are large.
    command.args(["--", "--test-threads=2"]);
    Step::new("counterparts", command).run()
}

impl Program {
    fn is_there(&self) -> bool {
        self.names.iter().any(|name| find(name).is_some())
    }
}

fn install(packages: &[&str]) -> Result<(), Failure> {
    let list = packages.join(", ");
    let as_root = user_is_root();
    if find("apt-get").is_none() || !as_root && find("sudo").is_none() {
        return Err(Failure(format!(
            "counterparts: {list} missing, and nothing here can install it: get it with whatever installs packages here"
        )));
    }
    // The package lists of a fresh machine are empty.
    let step = |command: Command| Step::new(format!("{list} missing, installing"), command);
    step(apt_get(!as_root, &["update"])).run()?;
    let words = ["install", "--yes", "--no-install-recommends"];
    step(apt_get(!as_root, &[&words, packages].concat())).run()
}
