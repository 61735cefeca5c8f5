//! Checks beyond tests: every order in which threads can meet, undefined behaviour, and random input.

use std::fs;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo, root};
use crate::tools::Tool;

/// The targets of the fuzzer, and the directories with their first inputs.
const TARGETS: [(&str, Option<&str>); 4] = [
    ("table", None),
    ("limit_text", None),
    ("config_document", Some("crates/sluicegate-config/tests/documents")),
    ("envoy_document", Some("crates/sluicegate-envoy/tests/documents")),
];

/// How many seconds each target runs.
const SECONDS: u32 = 20;

/// The tests that Miri runs: code that reads overlapping pieces. loom checks what threads share. Nothing here is
/// `unsafe`, so Miri checks the dependencies and the standard library.
const INTERPRETED: [&str; 3] = ["key::buf", "line::", "memory::one_word"];

/// The models of loom, by crate.
const MODELS: [(&str, &str); 2] =
    [("sluicegate-core", "memory::loom"), ("sluicegate-throttle", "layer::loom")];

/// The protocol of the table, and the wake-ups of the throttle, in every order in which two or three threads can meet.
pub(crate) fn try_every_order() -> Result<(), Failure> {
    for (package, models) in MODELS {
        let mut command = cargo(["test", "--package", package, "--lib", "--release", models]);
        command.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
        Step::new(format!("every order of threads in {package}"), command).run()?;
    }
    Ok(())
}

/// Runs the fuzzer for a moment. Returns what could not be run, and why.
pub(crate) fn fuzz() -> Result<Vec<String>, Failure> {
    let Some(tool) = Tool::new("fuzz", "~0.13").installed() else {
        return Ok(vec![
            "the fuzzer, because cargo-fuzz is not installed and cannot be installed here"
                .to_owned(),
        ]);
    };
    for (target, seeds) in TARGETS {
        let mut command = tool.command();
        // Without a sanitizer, which only `unsafe` code needs, a stable compiler is enough.
        command.args(["run", target, "--sanitizer", "none"]);
        if let Some(seeds) = seeds {
            // New inputs go into the first directory.
            let corpus = format!("fuzz/corpus/{target}");
            fs::create_dir_all(root().join(&corpus))
                .map_err(|error| Failure(format!("{corpus}: {error}")))?;
            command.args([corpus.as_str(), seeds]);
        }
        command.arg("--");
        command.arg(format!("-max_total_time={SECONDS}")).args(["-verbosity=0"]);
        Step::new(format!("fuzzing {target}"), command).run()?;
    }
    Ok(Vec::new())
}

/// Runs some tests in Miri. Returns what could not be run, and why.
pub(crate) fn interpret() -> Result<Vec<String>, Failure> {
    if !miri_runs() && !install_miri() {
        return Ok(vec![
            "the tests in Miri, because rustup has no nightly toolchain with it and cannot install \
             one here"
                .to_owned(),
        ]);
    }
    let mut command = nightly(&["miri", "test", "--package", "sluicegate-core", "--lib", "--"]);
    command.args(INTERPRETED).env("MIRIFLAGS", "-Zmiri-disable-isolation");
    Step::new("tests in Miri", command).run()?;
    Ok(Vec::new())
}

fn miri_runs() -> bool {
    let mut command = nightly(&["miri", "--version"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn install_miri() -> bool {
    let mut command = Command::new("rustup");
    command.args(["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"]);
    command.args(["--component", "miri,rust-src"]);
    match Step::new("Miri is missing, installing it", command).run() {
        Ok(()) => miri_runs(),
        Err(failure) => {
            eprintln!("{failure}");
            false
        }
    }
}

/// A cargo of the nightly toolchain, whichever toolchain runs this program.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root()).args(["run", "nightly", "cargo"]).args(arguments);
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    command.env("CARGO_TARGET_DIR", "target/miri");
    command
}
