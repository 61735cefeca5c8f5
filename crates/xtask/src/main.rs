//! The chores of this repository, as `cargo xtask <command>`.

mod bare;
mod bench;
mod ci;
#[cfg(unix)]
mod counterparts;
mod deny;
mod library;
mod oldest;
mod package;
mod proof;
mod prove;
#[cfg(unix)]
mod servers;
#[cfg(unix)]
mod ship;
mod sim;
mod step;
mod tools;

use std::env;
use std::ffi::OsString;
use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use crate::step::{Failure, Step, TESTED, cargo, run_tests};

const USAGE: &str = "\
usage: cargo xtask <command>

  test [arguments]   install what the tests need, and run every test; arguments go on to
                     `cargo test`
  counterparts       install the programs that users run beside the project, such as a browser,
                     nginx, Caddy, HAProxy and Envoy, and test against them
  ci                 check everything else that has to hold before a merge; `ci builds` is the half
                     of it that builds in other directories
  package            package every library, and compile it out of its package, with the oldest Rust
                     and the lowest dependencies that it declares; `ci` does so too
  ship               build the static program, the Debian package and, where Docker runs, the image,
                     and check them, before a release
  bench [words]      run the benchmarks and write BENCHMARKS.md and docs/benchmarks; words
                     choose programs by name and tables by title; --full takes longer
  prove [kinds]      run the long forms of the checks that look for what is rare, which take hours:
                     models, simulation, properties, differential, threads, miri, fuzz, mutants
  sim [arguments]    simulate clients of leased capacity with 100 seeds, and write docs/leases.md;
                     with `--seeds N`, `--seed N` or `--short`, only print the tables
";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();

    let outcome = match command.to_str() {
        Some("test") => test(rest),
        #[cfg(unix)]
        Some("counterparts") if rest.is_empty() => counterparts::test(),
        Some("ci") => ci::check_everything(&rest),
        Some("package") if rest.is_empty() => ci::package(),
        #[cfg(unix)]
        Some("ship") if rest.is_empty() => ci::ship(),
        Some("bench") => bench::bench(rest),
        Some("prove") => prove::prove(&rest),
        Some("sim") => sim::simulate(rest),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nFAILED: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// What says how many tests of a program run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

fn test(arguments: Vec<OsString>) -> Result<(), Failure> {
    #[cfg(unix)]
    servers::provide();
    let tests = |kind: &[&str]| {
        let mut command = cargo(["test", "--no-fail-fast"]);
        command.args(TESTED).args(kind);
        if env::var_os(TEST_THREADS).is_none() {
            // Many tests wait for other processes, and leave the processor to those that simulate.
            let processors = available_parallelism().map_or(1, NonZero::get);
            command.env(TEST_THREADS, (2 * processors).to_string());
        }
        #[cfg(unix)]
        servers::let_find(&mut command);
        command
    };
    if !arguments.is_empty() {
        let mut command = tests(&[]);
        command.args(arguments);
        return run_tests([vec![Step::new("tests", command)]]);
    }
    let named = |name: &str, kind: &[&str]| Step::new(name, tests(kind));
    named("build", &["--tests", "--no-run"]).run()?;
    // Without the examples that have no tests: checks compile them, and each is a program to link.
    let examples = library::tested_examples()?;
    let examples = examples.iter().flat_map(|name| ["--example", name]);
    let units: Vec<_> = ["--lib", "--bins"].into_iter().chain(examples).collect();
    // Tests of programs wait for servers, and the other ones do not.
    run_tests([
        vec![named("unit tests", &units), named("documentation", &["--doc"])],
        vec![named("tests of programs", &["--test", "*"])],
    ])
}
