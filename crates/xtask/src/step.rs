//! One command: shown, run, timed.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The pause before a command runs once more that fetches something. Tests have nothing to wait for.
const AGAIN: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 5 });

/// A command with a description of its purpose.
pub(crate) struct Step {
    name: String,
    command: Command,
}

impl Step {
    pub(crate) fn new(name: impl Into<String>, command: Command) -> Self {
        Self { name: name.into(), command }
    }

    /// Runs the command and waits for it; anything but success is a [`Failure`].
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.run_into(Stdio::inherit()).map(drop)
    }

    /// Like [`run`](Self::run), for a command that fetches something: if it fails, it runs once more after a pause, because
    /// networks and servers fail for moments.
    #[expect(clippy::disallowed_methods, reason = "there is nothing else to do")]
    pub(crate) fn fetch(mut self) -> Result<(), Failure> {
        let Err(failure) = self.run_into(Stdio::inherit()) else { return Ok(()) };
        eprintln!("{failure}; once more in {}", Seconds(AGAIN));
        thread::sleep(AGAIN);
        self.run()
    }

    /// Like [`run`](Self::run), and returns what the command printed.
    pub(crate) fn output(mut self) -> Result<String, Failure> {
        self.run_into(Stdio::piped())
    }

    fn run_into(&mut self, stdout: Stdio) -> Result<String, Failure> {
        let output = self.run_with(stdout, Child::wait_with_output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run_with(
        &mut self,
        stdout: Stdio,
        wait: impl FnOnce(Child) -> io::Result<Output>,
    ) -> Result<Output, Failure> {
        let shown = show(&self.command);
        eprintln!("\n==> {}: {shown}", self.name);

        let started = Instant::now();
        let output = (self.command.stdout(stdout).spawn())
            .and_then(wait)
            .map_err(|error| Failure(format!("{}: `{shown}` did not start: {error}", self.name)))?;
        let took = Seconds(started.elapsed());

        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stdout));
            let status = output.status;
            return Err(Failure(format!("{}: {status} after {took}: {shown}", self.name)));
        }
        eprintln!("<== {}: passed in {took}", self.name);
        Ok(output)
    }
}

/// Runs all commands that run tests, and fails if one did. The commands of a lane run one after the other, and the lanes
/// beside each other. What failing tests printed is repeated at the end, where a log of many thousand lines is read first.
pub(crate) fn run_tests(lanes: impl IntoIterator<Item = Vec<Step>>) -> Result<(), Failure> {
    let ended: Vec<_> = thread::scope(|scope| {
        let lanes: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(|| run_lane(lane))).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic")).collect()
    });
    ended.iter().for_each(|(failures, _)| eprint!("{failures}"));
    ended.into_iter().try_for_each(|(_, outcome)| outcome)
}

fn run_lane(lane: Vec<Step>) -> (Failures, Result<(), Failure>) {
    let mut failures = Failures::default();
    let mut outcome = Ok(());
    for mut step in lane {
        let run = step.run_with(Stdio::piped(), |mut child| {
            let printed = child.stdout.take();
            let lines =
                printed.into_iter().flat_map(|printed| BufReader::new(printed).split(b'\n'));
            for line in lines {
                let line = String::from_utf8_lossy(&line?).into_owned();
                println!("{line}");
                failures.read(line);
            }
            child.wait_with_output()
        });
        outcome = outcome.and(run.map(drop));
    }
    (failures, outcome)
}

/// What test programs print of their failing tests: from a line `failures:` to the result.
#[derive(Default)]
struct Failures {
    lines: Vec<String>,
    is_within: bool,
}

impl Failures {
    fn read(&mut self, line: String) {
        let is_end = line.starts_with("test result: ");
        self.is_within |= line == "failures:";
        if self.is_within {
            self.is_within = !is_end;
            self.lines.push(line);
        }
    }
}

impl Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Why a command of xtask failed, as one sentence.
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Of a file or a directory that cannot be read or written.
    pub(crate) fn at(path: &Path, error: &io::Error) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A duration as people read it in a log.
pub(crate) struct Seconds(pub(crate) Duration);

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.as_secs_f64())
    }
}

/// What the tests select of the workspace. The same selection elsewhere uses what they compiled.
///
/// `sluicegate-counterparts` needs large programs, so it has a command of its own.
pub(crate) const TESTED: [&str; 4] =
    ["--workspace", "--all-features", "--exclude", "sluicegate-counterparts"];

/// The cargo that started this program, in the root of the workspace.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package)
}

/// The command line as it would be typed, so that it can be copied from a log.
fn show(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quote(value?))));
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args()).map(quote);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"*$&|;<>()".contains(c)) {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        word.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = cargo(["doc", "--features", "a b"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(show(&command), "RUSTDOCFLAGS='-D warnings' cargo doc --features 'a b'");
    }

    #[test]
    fn a_command_that_fails_is_a_failure_that_names_it() {
        let step = Step::new("nonsense", cargo(["--no-such-flag"]));
        let failure = step.run().err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(failure.starts_with("nonsense: exit status: 1 after "), "{failure}");
        assert!(failure.ends_with(": cargo --no-such-flag"), "{failure}");
    }

    #[test]
    fn what_cannot_be_fetched_is_tried_twice() {
        let directory = std::env::temp_dir().join(format!("xtask-fetch-{}", std::process::id()));
        let mut command = Command::new("sh");
        // It fails the first time.
        command.args(["-c", "mkdir \"$1\" && exit 1; rmdir \"$1\"", "sh"]).arg(&directory);
        assert!(Step::new("a file", command).fetch().is_ok());
        assert!(!directory.exists());
    }

    #[test]
    fn failing_tests_are_told_at_the_end() {
        let mut failures = Failures::default();
        let log = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n1 of 2\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed\n\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed\n";
        log.lines().for_each(|line| failures.read(line.to_owned()));
        let told = failures.to_string();
        assert!(told.starts_with("failures:\n\n---- b stdout ----\n1 of 2\n"), "{told}");
        assert!(told.ends_with("    b\n\ntest result: FAILED. 1 passed; 1 failed\n"), "{told}");
    }

    #[test]
    fn what_a_command_prints_is_returned() {
        let printed = Step::new("version", cargo(["--version"])).output();
        assert!(printed.is_ok_and(|printed| printed.starts_with("cargo ")));
    }

    #[test]
    fn a_program_that_is_not_there_is_a_failure_too() {
        let failure = Step::new("nothing", Command::new("no-such-program-anywhere")).run();
        let failure = failure.err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(failure.contains("`no-such-program-anywhere` did not start"), "{failure}");
    }
}
