//! The long forms of the checks that look for what is rare. `ci` and `test` run short forms of them.

use std::ffi::OsString;
use std::fs;
use std::time::{Instant, UNIX_EPOCH};

use crate::library::libraries;
use crate::proof::{self, Effort};
use crate::sim;
use crate::step::{Failure, Seconds, Step, cargo, root};
use crate::tools::Tool;

/// Runs a kind of proof, and returns what could not be run, and why.
type Run = fn() -> Result<Vec<String>, Failure>;

/// A kind of proof: its name, what it runs, and how.
const KINDS: [(&str, &str, Run); 8] = [
    ("models", "the protocol of leases, a million states of each model", check_models),
    (
        "simulation",
        "leases in Doorman's scenarios, 100 seeds of each, and 10,000 clients",
        simulate,
    ),
    (
        "properties",
        "every property test 20 times, with random cases of its own each time",
        try_properties,
    ),
    (
        "differential",
        "the scripts of Redis beside the arithmetic in Rust, 5 million steps",
        compare_scripts,
    ),
    ("threads", "loom, with three interruptions", try_orders),
    ("miri", "the tests of keys and rows in Miri", interpret),
    ("fuzz", "each target of the fuzzer for ten minutes", fuzz),
    ("mutants", "300 changes of what decides, of which the tests catch 95 in a hundred", mutate),
];

/// What decides: a change here has to fail a test of the crate itself.
const DECIDING: [&str; 8] = [
    "crates/sluicegate-limit/src/**",
    "crates/sluicegate-core/src/admission/**",
    "crates/sluicegate-core/src/store/memory/**",
    "crates/sluicegate-redis/src/lease/**",
    "crates/sluicegate-throttle/src/scheduler/**",
    "crates/sluicegate-lease/src/pool/**",
    "crates/sluicegate-client/src/retry/**",
    "crates/sluicegate-config/src/compile/**",
];

/// How many changes are tried, of some thousands.
const SAMPLE: usize = 300;

/// How many of a hundred have to be caught.
const CAUGHT: usize = 95;

const STATES: &str = "1000000";
const STEPS: &str = "5000000";
/// Property tests draw other cases each time.
const ROUNDS: u32 = 20;

/// Runs the kinds of proof that the words name, or all of them. One that fails does not stop the others.
pub(crate) fn prove(words: &[OsString]) -> Result<(), Failure> {
    let wanted = wanted(words)?;
    let mut report = Vec::new();
    let mut failures = 0;
    for (name, what, run) in wanted {
        let started = Instant::now();
        let outcome = run();
        let took = Seconds(started.elapsed());
        match outcome {
            Ok(missing) if missing.is_empty() => {
                report.push(format!("PROVED: {name}: {what}, in {took}"));
            }
            Ok(missing) => {
                report.extend(missing.iter().map(|missing| format!("NOT RUN: {name}: {missing}")));
            }
            Err(failure) => {
                failures += 1;
                report.push(format!("FAILED: {name}: {failure}"));
            }
        }
    }
    eprintln!();
    report.iter().for_each(|line| eprintln!("{line}"));
    match failures {
        0 => Ok(()),
        _ => Err(Failure(format!("{failures} kinds of proof failed"))),
    }
}

fn wanted(words: &[OsString]) -> Result<Vec<(&'static str, &'static str, Run)>, Failure> {
    let is_named = |name: &str| words.iter().any(|word| *word == *name);
    if let Some(unknown) = words.iter().find(|word| KINDS.iter().all(|(name, ..)| **word != **name))
    {
        let names: Vec<_> = KINDS.iter().map(|(name, ..)| *name).collect();
        let unknown = unknown.to_string_lossy();
        return Err(Failure(format!("`{unknown}` is no kind of proof: {}", names.join(", "))));
    }
    let all = words.is_empty();
    Ok(KINDS.into_iter().filter(|(name, ..)| all || is_named(name)).collect())
}

fn check_models() -> Result<Vec<String>, Failure> {
    let mut command = cargo(["test", "--release", "--package", "sluicegate-lease", "--lib"]);
    // One model at a time: each takes gigabytes.
    command.args(["model::", "--", "--nocapture", "--test-threads=1"]);
    command.env("MODEL_STATES", STATES);
    Step::new("models of leases", command).run()?;
    Ok(Vec::new())
}

fn simulate() -> Result<Vec<String>, Failure> {
    sim::simulate(["--seeds", "100"].map(OsString::from).into())?;
    Ok(Vec::new())
}

fn try_properties() -> Result<Vec<String>, Failure> {
    let libraries = libraries()?;
    let with_properties: Vec<_> =
        libraries.iter().filter(|library| library.depends_on("proptest")).collect();
    for round in 1..=ROUNDS {
        let mut command = cargo(["test", "--release", "--all-features", "--lib", "--quiet"]);
        for library in &with_properties {
            command.args(["--package", &library.name]);
        }
        // For tests that do not say how many cases they need.
        command.env("PROPTEST_CASES", "5000");
        Step::new(format!("properties, round {round} of {ROUNDS}"), command).run()?;
    }
    Ok(Vec::new())
}

fn compare_scripts() -> Result<Vec<String>, Failure> {
    let mut command = cargo(["test", "--release", "--package", "sluicegate-redis", "differential"]);
    command.env("SLUICEGATE_STEPS", STEPS);
    #[cfg(unix)]
    crate::servers::provide_for(&mut command);
    Step::new("scripts beside the arithmetic", command).run()?;
    Ok(Vec::new())
}

fn try_orders() -> Result<Vec<String>, Failure> {
    proof::try_every_order(Effort::Long)?;
    Ok(Vec::new())
}

fn interpret() -> Result<Vec<String>, Failure> {
    proof::interpret(Effort::Long)
}

fn fuzz() -> Result<Vec<String>, Failure> {
    proof::fuzz(Effort::Long)
}

/// Changes what decides, one place at a time, and runs the tests of its crate: each should fail some.
///
/// The sample is another one each time: every n-th of all changes, from a place that the clock chooses.
fn mutate() -> Result<Vec<String>, Failure> {
    let Some(tool) = Tool::new("mutants", "27").installed() else {
        let why = "cargo-mutants is not installed and cannot be installed here";
        return Ok(vec![format!("changes of what decides, because {why}")]);
    };
    let command = || {
        let mut command = tool.command();
        command.args(DECIDING.iter().flat_map(|files| ["--file", files]));
        command
    };
    let mut list = command();
    list.arg("--list");
    let all = Step::new("changes of what decides", list).output()?.lines().count();
    let shards = all.div_ceil(SAMPLE).max(1);
    let seconds = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() as usize;
    let directory = root().join("target/mutants");
    let mut run = command();
    run.arg("--shard").arg(format!("{}/{shards}", seconds % shards));
    // Every n-th change, and not the n-th part of all, which would be of one file.
    run.args(["--sharding=round-robin", "--all-features", "--minimum-test-timeout=120"]);
    run.arg("--output").arg(&directory);
    #[cfg(unix)]
    crate::servers::provide_for(&mut run);
    // It also fails if a single change is not caught.
    let run = Step::new(format!("{SAMPLE} of {all} changes"), run).run();
    let count = |outcome: &str| {
        let file = directory.join("mutants.out").join(format!("{outcome}.txt"));
        fs::read_to_string(file).map_or(0, |lines| lines.lines().count())
    };
    // A change after which a test never ends is caught too.
    let (caught, missed) = (count("caught") + count("timeout"), count("missed"));
    if caught + missed == 0 {
        run?;
    }
    eprintln!("{caught} changes were caught and {missed} were not: see {}", directory.display());
    match caught * 100 >= CAUGHT * (caught + missed) {
        true => Ok(Vec::new()),
        false => Err(Failure(format!("{missed} of {} changes fail no test", caught + missed))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let wanted = wanted(&words).map_err(|failure| failure.to_string())?;
        Ok(wanted.into_iter().map(|(name, ..)| name).collect())
    }

    #[test]
    fn words_choose_kinds_of_proof() {
        assert_eq!(names(&["fuzz", "models"]), Ok(vec!["models", "fuzz"]));
        assert_eq!(names(&[]).map(|names| names.len()), Ok(KINDS.len()));
        assert!(
            names(&["everything"]).is_err_and(|problem| problem.contains("models, simulation"))
        );
    }
}
