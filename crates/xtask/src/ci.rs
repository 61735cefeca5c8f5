//! Checks before a merge, besides the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::deny;
use crate::features;
use crate::layers;
use crate::lowest;
use crate::msrv;
use crate::package;
use crate::proof::{self, Effort};
use crate::sim;
use crate::step::{Failure, Seconds, Step, cargo, root};

/// Runs every check in order and stops at the first that fails.
pub(crate) fn check_everything() -> Result<(), Failure> {
    let started = Instant::now();

    layers::check()?;

    let mut steps = vec![formatting(), lints(), documentation()];
    steps.extend(each_library_alone()?);
    for step in steps {
        step.run()?;
    }
    lowest::check_lowest_versions(&check_packages()?)?;
    let mut unchecked = msrv::check_oldest_rust(&libraries()?)?;
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
fn each_library_alone() -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    for directory in libraries()? {
        let path = root().join(&directory).join("Cargo.toml");
        let manifest = fs::read_to_string(&path)
            .map_err(|error| Failure(format!("{directory}/Cargo.toml: {error}")))?;
        let features = features::declared_in(&manifest).map_err(|unreadable| {
            let features::Unreadable { line, problem } = unreadable;
            Failure(format!("{directory}/Cargo.toml:{line}: {problem}"))
        })?;
        steps.extend(selections(&features).iter().map(|flags| alone(&directory, flags)));
    }
    Ok(steps)
}

/// The directories below `crates/` that contain a library, sorted.
pub(crate) fn libraries() -> Result<Vec<String>, Failure> {
    let unreadable = |error| Failure(format!("crates: {error}"));
    let mut libraries = Vec::new();
    for entry in fs::read_dir(root().join("crates")).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.join("src/lib.rs").is_file() {
            libraries.push(format!("crates/{}", name_of(&path)));
        }
    }
    libraries.sort();
    Ok(libraries)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The flags for no feature, the default features, each feature alone, and all together.
fn selections(features: &[String]) -> Vec<Vec<String>> {
    let flags = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let named: Vec<_> = features.iter().filter(|name| *name != "default").collect();

    let mut selections = vec![flags(&["--no-default-features"])];
    if named.len() < features.len() {
        selections.push(flags(&[]));
    }
    for name in &named {
        selections.push(flags(&["--no-default-features", "--features", name.as_str()]));
    }
    if named.len() > 1 {
        selections.push(flags(&["--all-features"]));
    }
    selections
}

/// Clippy instead of `cargo check`, because it can fail on a warning without compiling the dependencies again. An
/// import that only some feature uses is such a warning.
fn alone(directory: &str, flags: &[String]) -> Step {
    let library = directory.trim_start_matches("crates/");
    let mut command = cargo(["clippy", "--manifest-path"]);
    command.arg(format!("{directory}/Cargo.toml")).args(flags).args(["--", "-D", "warnings"]);
    Step::new(format!("{library} alone"), command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(features: &[&str]) -> Vec<String> {
        let features: Vec<_> = features.iter().map(|&name| name.to_owned()).collect();
        selections(&features).iter().map(|flags| flags.join(" ")).collect()
    }

    #[test]
    fn every_feature_is_checked_alone() {
        let expected = [
            "--no-default-features",
            "",
            "--no-default-features --features std",
            "--no-default-features --features tracing",
            "--all-features",
        ];
        assert_eq!(lines(&["default", "std", "tracing"]), expected);
    }

    #[test]
    fn nothing_is_checked_twice() {
        assert_eq!(lines(&[]), ["--no-default-features"]);
        assert_eq!(
            lines(&["serde"]),
            ["--no-default-features", "--no-default-features --features serde"]
        );
    }

    #[test]
    fn this_workspace_can_be_read() {
        assert!(each_library_alone().is_ok_and(|steps| !steps.is_empty()));
    }
}
