//! Checks before a merge, besides the tests.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::bare;
use crate::deny;
use crate::library::{Library, libraries};
use crate::oldest;
use crate::package;
use crate::proof::{self, Effort};
use crate::sim;
use crate::step::{Failure, Seconds, Step, cargo, root};

/// The word that makes `ci` run its second half only.
const BUILDS: &str = "builds";

/// Where the second half writes what it prints.
const LOG: &str = "target/ci-builds.log";

/// Runs every check, and stops at the first that fails.
///
/// The two halves compile in different directories, and each is often busy with a single crate, so they run side by
/// side. The tests against other programs run alone at the end, because they measure times.
pub(crate) fn check_everything(arguments: &[OsString]) -> Result<(), Failure> {
    report(|| match arguments {
        [] => {
            let builds = SecondHalf::start()?;
            let mut unchecked = check_code()?;
            unchecked.extend(builds.finish()?);
            #[cfg(unix)]
            crate::counterparts::test()?;
            Ok(unchecked)
        }
        [word] if word == BUILDS => check_builds(),
        _ => Err(Failure(format!("`ci` takes no arguments, or `{BUILDS}`"))),
    })
}

/// What the compiler says, of every crate, in every form in which users compile it.
fn check_code() -> Result<Vec<String>, Failure> {
    let mut steps = vec![formatting(), lints(), documentation()];
    let libraries = libraries()?;
    steps.extend(each_alone(&libraries));
    for step in steps {
        step.run()?;
    }
    let mut unchecked = check_packages(&libraries)?;
    unchecked.extend(bare::build_without_std()?);
    sim::simulate_shortly()?;
    Ok(unchecked)
}

/// What is built in directories of its own: tools, and the short forms of long proofs.
fn check_builds() -> Result<Vec<String>, Failure> {
    let mut unchecked = deny::check_dependencies()?;
    proof::try_every_order(Effort::Short)?;
    unchecked.extend(proof::interpret(Effort::Short)?);
    unchecked.extend(proof::fuzz(Effort::Short)?);
    Ok(unchecked)
}

/// [`check_builds`], in a process of its own, whose output would be mixed with that of the first half.
struct SecondHalf(Child);

impl SecondHalf {
    fn start() -> Result<Self, Failure> {
        let failed = |error| Failure(format!("`ci {BUILDS}`: {error}"));
        let log = File::create(root().join(LOG)).map_err(failed)?;
        eprintln!("\n==> `cargo xtask ci {BUILDS}` runs beside this, and writes to {LOG}");
        let mut command = Command::new(env::current_exe().map_err(failed)?);
        command.args(["ci", BUILDS]).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        Ok(Self(command.spawn().map_err(failed)?))
    }

    /// Waits for its end, shows what it printed, and returns what it could not check.
    fn finish(mut self) -> Result<Vec<String>, Failure> {
        let failed = |error| Failure(format!("`ci {BUILDS}`: {error}"));
        let status = self.0.wait().map_err(failed)?;
        let printed = fs::read_to_string(root().join(LOG)).map_err(failed)?;
        eprint!("\n{printed}");
        match status.success() {
            true => {
                let unchecked = printed.lines().filter_map(|line| line.strip_prefix(UNCHECKED));
                Ok(unchecked.map(str::to_owned).collect())
            }
            false => Err(Failure(format!("`ci {BUILDS}`: {status}, see above or {LOG}"))),
        }
    }
}

impl Drop for SecondHalf {
    /// If the first half fails, the other need not go on.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Builds and checks what users install.
#[cfg(unix)]
pub(crate) fn ship() -> Result<(), Failure> {
    report(crate::ship::build)
}

/// Begins the line of what could not be checked.
const UNCHECKED: &str = "NOT CHECKED: ";

/// Runs checks that return what they could not check, and says how they ended.
fn report(check: impl FnOnce() -> Result<Vec<String>, Failure>) -> Result<(), Failure> {
    let started = Instant::now();
    let unchecked = check()?;
    eprintln!("\nEverything that was checked passed, in {}.", Seconds(started.elapsed()));
    for what in unchecked {
        eprintln!("{UNCHECKED}{what}");
    }
    Ok(())
}

/// Packages every library, and compiles it from its package.
pub(crate) fn package() -> Result<(), Failure> {
    report(|| check_packages(&libraries()?))
}

fn check_packages(libraries: &[Library]) -> Result<Vec<String>, Failure> {
    oldest::check_oldest(&package::unpacked_packages(libraries)?, libraries)
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

/// The documentation of an example needs what tests need. So the features of dependencies are those that [`lints`] has
/// compiled.
fn documentation() -> Step {
    let mut command = cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    command.args(["--lib", "--bins", "--example", "boxed"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Step::new("documentation", command)
}

/// Each library as its users compile it. In a workspace build, a feature that one member enables is enabled for all,
/// which hides that another forgot to enable it.
///
/// Clippy instead of `cargo check`, because it can fail on a warning without compiling the dependencies again. An
/// import that only some feature uses is such a warning. `--no-deps`, because each library that this one depends on had
/// its own turn before. It has to be before: Clippy does not look again at what it compiled for another library.
fn each_alone(libraries: &[Library]) -> Vec<Step> {
    let alone = |library: &Library, flags: &[&str]| {
        let mut command = cargo(["clippy", "--no-deps", "--package", &library.name]);
        command.args(flags).args(["--", "-D", "warnings"]);
        Step::new(format!("{} alone", library.name), command)
    };
    let steps = libraries.iter().flat_map(|library| {
        library.selections().into_iter().map(move |flags| alone(library, &flags))
    });
    steps.collect()
}
