//! Other processes, which share a limit with this one.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::store::shared;

/// Another process that runs a test of this very program, and is told what to do by its environment.
pub(crate) struct Worker {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
    /// Runs `test`, which finds the server's URL in `variable`.
    pub(crate) fn start(test: &str, variable: &str, prefix: &str) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program has a file"));
        command.args(["--exact", test, "--nocapture"]);
        command.env(variable, shared().url()).env("SLUICEGATE_PREFIX", prefix);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("this program runs");
        let output = BufReader::new(process.stdout.take().expect("it is a pipe"));
        let lines = output.lines().map(|line| line.expect("it is text"));
        Self { process, lines: Box::new(lines) }
    }

    pub(crate) fn is_ready(&mut self) {
        assert!(self.lines.any(|line| line == "ready"), "the process ended early");
    }

    /// It dies at once, without a word to anybody.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }

    pub(crate) fn begin(&mut self) {
        let input = self.process.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "go").expect("the process reads");
    }

    /// What it says of each limit that was admitted, when it is through.
    pub(crate) fn admitted(mut self) -> Vec<String> {
        let admitted =
            self.lines.by_ref().filter_map(|line| Some(line.strip_prefix("admitted ")?.to_owned()));
        let admitted = admitted.collect();
        assert!(self.process.wait().expect("it is ours").success());
        admitted
    }
}
