//! Whether the arithmetic builds for machines without an operating system.

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo};

/// The crate that needs no `std`.
const PACKAGE: &str = "sluicegate-limit";

/// WebAssembly without a host, and a microcontroller. Neither has a `std` that could be linked by mistake: for the
/// second there is none at all.
const TARGETS: [&str; 2] = ["wasm32-unknown-unknown", "thumbv7m-none-eabi"];

/// Builds for every such target. Returns those that could not be built for, and why.
pub(crate) fn build_without_std() -> Result<Vec<String>, Failure> {
    let mut unchecked = Vec::new();
    for target in TARGETS {
        if !is_installed(target) && !install(target) {
            unchecked.push(format!(
                "{PACKAGE} for {target}, because rustup does not have the target and cannot install it here"
            ));
            continue;
        }
        let command = cargo(["build", "--package", PACKAGE, "--target", target]);
        Step::new(format!("{PACKAGE} for {target}"), command).run()?;
    }
    Ok(unchecked)
}

fn is_installed(target: &str) -> bool {
    let mut command = Command::new("rustup");
    command.args(["target", "list", "--installed"]).stderr(Stdio::null());
    let listed = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&listed).lines().any(|line| line == target)
}

fn install(target: &str) -> bool {
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]);
    match Step::new(format!("the target {target} is missing, installing it"), command).fetch() {
        Ok(()) => true,
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}
