//! Commands of cargo that a machine may lack, and that are then put into this repository.

use std::process::{Command, Stdio};

use crate::step::{Step, cargo, root};

/// Where they are installed.
pub(crate) const TOOLS: &str = "target/tools";

/// A command of cargo, such as `deny`, and the releases of it that will do.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
}

/// A version that can be run.
pub(crate) enum Installed {
    OfTheMachine(&'static str),
    OfThisRepository(&'static str),
}

impl Tool {
    pub(crate) const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version }
    }

    /// The installed one, or one that is installed now, which takes a minute on two cores, once.
    pub(crate) fn installed(&self) -> Option<Installed> {
        let Self { name, version } = self;
        let places = [Installed::OfTheMachine(name), Installed::OfThisRepository(name)];
        if let Some(installed) = places.into_iter().find(Installed::runs) {
            return Some(installed);
        }
        // Without optimization and names of lines: compiling those takes minutes, and the tools run for seconds. The tools
        // have many dependencies in common.
        let mut command = cargo(["install", "--debug", "--locked", "--root", TOOLS]);
        command.args(["--target-dir", &format!("{TOOLS}/build")]);
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        command.arg(format!("cargo-{name}")).args(["--version", version]);
        match Step::new(format!("cargo-{name} is missing, installing it"), command).fetch() {
            Ok(()) => Some(Installed::OfThisRepository(name)),
            Err(failure) => {
                eprintln!("{failure}");
                None
            }
        }
    }
}

impl Installed {
    pub(crate) fn command(&self) -> Command {
        match self {
            Self::OfTheMachine(name) => cargo([name]),
            Self::OfThisRepository(name) => {
                let program = root().join(TOOLS).join(format!("bin/cargo-{name}"));
                let mut command = Command::new(program);
                // As cargo calls its commands.
                command.arg(name).current_dir(root());
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
