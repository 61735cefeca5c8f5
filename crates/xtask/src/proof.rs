//! Checks beyond tests: every order in which threads can meet, undefined behaviour, and random input.

use std::fs;
use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo, root};
use crate::tools::Tool;

/// The targets of the fuzzer, and the directories with their first inputs.
const TARGETS: [(&str, Option<&str>); 7] = [
    ("table", None),
    ("count_file", None),
    ("limit_text", None),
    ("config_document", Some("crates/sluicegate-config/tests/documents")),
    ("envoy_document", Some("crates/sluicegate-config/tests/config/envoy/documents")),
    ("envoys_calls", None),
    ("access_log", Some("fuzz/seeds/access_log")),
];

/// How long to look: a moment before each merge, or as long as it takes to find what is rare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Short,
    Long,
}

impl Effort {
    /// For how many seconds each target is fuzzed.
    fn seconds(self) -> u32 {
        match self {
            Self::Short => 10,
            Self::Long => 600,
        }
    }
}

/// The tests that Miri runs: code that reads overlapping pieces. loom checks what threads share. Nothing here is
/// `unsafe`, so Miri checks the dependencies and the standard library.
const INTERPRETED: [&str; 3] = ["key::buf", "line::", "memory::one_word"];

/// The crates with models for loom, which are in modules of that name.
const MODELED: [&str; 2] = ["sluicegate-core", "sluicegate-throttle"];

/// More of them, which take minutes: whole keys and their texts, words of the table, and header fields.
const INTERPRETED_LONG: [&str; 4] = ["key::", "memory::one_word", "memory::hash", "http::line"];

/// Miri is a hundred times slower, so property tests draw few cases.
const INTERPRETED_CASES: &str = "8";

/// In the long form, threads are interrupted once more than in the short one, for at most so many seconds in each model.
const INTERRUPTIONS: [(&str, &str); 2] =
    [("LOOM_MAX_PREEMPTIONS", "3"), ("LOOM_MAX_DURATION", "300")];

/// In the short form, each model is tried for at most so many seconds. A few models have orders for minutes.
const MOMENT: (&str, &str) = ("LOOM_MAX_DURATION", "10");

/// In the short forms, compiling takes longer than what is compiled.
const HASTY: (&str, &str) = ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");

/// The protocol of the table, and the wake-ups of the throttle, in every order in which two or three threads can meet.
pub(crate) fn try_every_order(effort: Effort) -> Result<(), Failure> {
    let mut command = cargo(["test", "--lib", "--release", "--target-dir", "target/loom"]);
    for package in MODELED {
        command.args(["--package", package]);
    }
    command.arg("loom::").env("RUSTFLAGS", "--cfg loom");
    match effort {
        Effort::Short => command.envs([MOMENT, HASTY, ("CARGO_PROFILE_RELEASE_DEBUG", "false")]),
        Effort::Long => command.envs(INTERRUPTIONS),
    };
    Step::new("every order of threads", command).run()
}

/// Runs the fuzzer. Returns what could not be run, and why.
pub(crate) fn fuzz(effort: Effort) -> Result<Vec<String>, Failure> {
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
        if effort == Effort::Short {
            command.env(HASTY.0, HASTY.1);
        }
        command.arg("--");
        command.arg(format!("-max_total_time={}", effort.seconds())).args(["-verbosity=0"]);
        Step::new(format!("fuzzing {target}"), command).run()?;
    }
    Ok(Vec::new())
}

/// Runs some tests in Miri. Returns what could not be run, and why.
pub(crate) fn interpret(effort: Effort) -> Result<Vec<String>, Failure> {
    if !miri_runs() && !install_miri() {
        return Ok(vec![
            "the tests in Miri, because rustup has no nightly toolchain with it and cannot install \
             one here"
                .to_owned(),
        ]);
    }
    let mut command = nightly(&["miri", "test", "--package", "sluicegate-core", "--lib", "--"]);
    command.args(match effort {
        Effort::Short => &INTERPRETED[..],
        Effort::Long => &INTERPRETED_LONG[..],
    });
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", INTERPRETED_CASES);
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
    match Step::new("Miri is missing, installing it", command).fetch() {
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
