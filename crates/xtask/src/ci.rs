//! Checks before a merge, besides the tests.

use std::path::PathBuf;
use std::time::Instant;

use crate::bare;
use crate::deny;
use crate::library::{Library, libraries};
use crate::lowest;
use crate::msrv;
use crate::package;
use crate::proof::{self, Effort};
use crate::sim;
use crate::step::{Failure, Seconds, Step, cargo};

/// Runs every check in order and stops at the first that fails.
pub(crate) fn check_everything() -> Result<(), Failure> {
    let started = Instant::now();

    let mut steps = vec![formatting(), lints(), documentation()];
    let libraries = libraries()?;
    steps.extend(each_alone(&libraries));
    for step in steps {
        step.run()?;
    }
    lowest::check_lowest_versions(&package::check_packages(&libraries)?)?;
    let mut unchecked = bare::build_without_std()?;
    unchecked.extend(msrv::check_oldest_rust(&libraries)?);
    unchecked.extend(deny::check_dependencies()?);
    #[cfg(unix)]
    {
        crate::counterparts::test()?;
        unchecked.extend(crate::ship::build()?);
    }
    sim::simulate_shortly()?;
    proof::try_every_order(Effort::Short)?;
    unchecked.extend(proof::interpret(Effort::Short)?);
    unchecked.extend(proof::fuzz(Effort::Short)?);

    report(started, &unchecked);
    Ok(())
}

/// Builds and checks what users install.
#[cfg(unix)]
pub(crate) fn ship() -> Result<(), Failure> {
    let started = Instant::now();
    let unchecked = crate::ship::build()?;
    report(started, &unchecked);
    Ok(())
}

fn report(started: Instant, unchecked: &[String]) {
    eprintln!("\nEverything that was checked passed, in {}.", Seconds(started.elapsed()));
    for what in unchecked {
        eprintln!("NOT CHECKED: {what}");
    }
}

/// Packages every library, and compiles it from its package. Returns the workspace of the unpacked packages.
pub(crate) fn check_packages() -> Result<PathBuf, Failure> {
    package::check_packages(&libraries()?)
}

fn formatting() -> Step {
    Step::new("formatting", cargo(["fmt", "--all", "--check"]))
}

/// `--all-targets` also compiles the examples and the benchmarks.
fn lints() -> Step {
    let mut command = cargo(["clippy", "--workspace", "--all-targets", "--all-features"]);
    command.args(["--", "-D", "warnings"]);
    Step::new("lints", command)
}

fn documentation() -> Step {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step::new("documentation", command)
}

/// Each library as its users compile it. In a workspace build, a feature that one member enables is enabled for all,
/// which hides that another forgot to enable it.
///
/// Clippy instead of `cargo check`, because it can fail on a warning without compiling the dependencies again. An
/// import that only some feature uses is such a warning.
fn each_alone(libraries: &[Library]) -> Vec<Step> {
    let alone = |library: &Library, flags: &[&str]| {
        let mut command = cargo(["clippy", "--package", &library.name]);
        command.args(flags).args(["--", "-D", "warnings"]);
        Step::new(format!("{} alone", library.name), command)
    };
    let steps = libraries.iter().flat_map(|library| {
        library.selections().into_iter().map(move |flags| alone(library, &flags))
    });
    steps.collect()
}
