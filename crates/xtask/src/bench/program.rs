//! The programs in `benches/`, and the rivals that they depend on.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::wanted::Wanted;
use super::{command, module, weight};
use crate::step::{Failure, Seconds, Step, cargo};

/// What the programs printed, and why some printed less than expected.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) printed: String,
    pub(super) problems: Vec<String>,
}

/// The names of all programs, in the order of the manifest of `benches/`.
pub(super) fn all(manifest: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut within = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            within = line.trim() == "[[bench]]";
        } else if let Some(name) = line.strip_prefix("name = ").filter(|_| within) {
            programs.push(name.trim().trim_matches('"').to_owned());
        }
    }
    programs
}

/// What is built for a program outside of `benches/`, and the variable that tells where it is.
type Built = (&'static str, &'static str, fn() -> Result<OsString, Failure>);

const BUILT: [Built; 3] = [
    (module::PROGRAM, module::VARIABLE, module::get),
    (command::PROGRAM, command::OURS, command::ours),
    (command::PROGRAM, command::THROTTLECRAB, command::throttlecrab),
];

/// The program that needs a feature of its name.
const SERVER: &str = "server";

/// Builds all programs first, so that no compiler runs while one of them measures.
pub(super) fn build() -> Result<(), Failure> {
    let build = || cargo(["bench", "--package", "sluicegate-benches", "--no-run"]);
    Step::new("benchmarks", build()).run()?;
    let mut server = build();
    server.args(["--bench", SERVER, "--features", SERVER]);
    Step::new("benchmark of the server", server).run()
}

/// Runs the programs one after the other. If one fails, the others still run.
pub(super) fn run(wanted: &Wanted) -> Outcome {
    let mut outcome = Outcome::default();
    for program in &wanted.programs {
        if program == weight::PROGRAM {
            match weight::printed(&wanted.words) {
                Ok(printed) => outcome.printed += &printed,
                Err(Failure(why)) => outcome.problems.push(why),
            }
            continue;
        }
        let mut command = cargo(["bench", "--quiet", "--package", "sluicegate-benches", "--bench"]);
        command.arg(program);
        if program == SERVER {
            command.args(["--features", SERVER]);
        }
        command.arg("--").args(&wanted.words);
        if wanted.full {
            command.arg("--full");
        }
        // Without one of these, a row is missing.
        for (of, variable, get) in BUILT {
            if program == of {
                match get() {
                    Ok(built) => _ = command.env(variable, built),
                    Err(Failure(why)) => outcome.problems.push(why),
                }
            }
        }
        eprintln!("\n==> {program}");
        let started = Instant::now();
        match show_and_keep(command, &mut outcome.printed) {
            Ok(()) => eprintln!("<== {program}: {}", Seconds(started.elapsed())),
            Err(error) => outcome.problems.push(format!("{program}: {error}")),
        }
    }
    outcome
}

fn show_and_keep(mut command: Command, kept: &mut String) -> io::Result<()> {
    let mut running = command.stdout(Stdio::piped()).spawn()?;
    if let Some(stdout) = running.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            writeln!(io::stdout(), "{line}")?;
            kept.push_str(&line);
            kept.push('\n');
        }
    }
    match running.wait()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(status.to_string())),
    }
}

/// The rivals: dependencies that the manifest pins to one release.
pub(super) fn rivals(manifest: &str) -> Vec<String> {
    let pinned = |line: &&str| line.contains("\"=");
    let name = |line: &str| line.split(['=', '.', ' ']).next().unwrap_or_default().to_owned();
    manifest.lines().filter(pinned).map(name).collect()
}

/// The rivals with their releases in the lock file.
pub(super) fn releases(manifest: &str, lock: &str) -> Vec<String> {
    let release = |name: &String| {
        let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", package.split('"').next()?))
    };
    rivals(manifest).iter().filter_map(release).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
[package]
name = "sluicegate-benches"

[[bench]]
name = "step"
path = "step.rs"

[[bench]]
name = "accuracy"

[dependencies]
axum.workspace = true
clock-lib = "1"
governor = "=0.10.4"
rate-net = { version = "=2.1.0", features = ["algorithms"] }
"#;

    #[test]
    fn every_program_of_the_manifest_is_found() {
        assert_eq!(all(MANIFEST), ["step", "accuracy"]);
    }

    #[test]
    fn a_rival_is_what_is_pinned_to_one_release() {
        let lock = "\
[[package]]\nname = \"governor\"\nversion = \"0.10.4\"\n\n\
[[package]]\nname = \"rate-net\"\nversion = \"2.1.0\"\n";
        assert_eq!(rivals(MANIFEST), ["governor", "rate-net"]);
        assert_eq!(releases(MANIFEST, lock), ["governor 0.10.4", "rate-net 2.1.0"]);
    }

    #[test]
    fn what_a_program_prints_is_kept_even_if_it_fails() {
        let mut kept = String::new();
        let outcome = show_and_keep(cargo(["--version"]), &mut kept);
        assert!(outcome.is_ok() && kept.starts_with("cargo "), "{kept}");
        let outcome = show_and_keep(cargo(["--no-such-flag"]), &mut kept);
        assert!(outcome.unwrap_err().to_string().contains("exit"));
    }
}
