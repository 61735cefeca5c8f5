//! Other processes, which share a limit with this one.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::store::shared;

/// Another process that runs a test of this program. Environment variables tell it what to do.
pub(crate) struct Worker {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Worker {
    /// Runs `test`, which reads the server's URL from `variable`.
    pub(crate) fn start(test: &str, variable: &str, prefix: &str) -> Self {
        let mut command = Command::new(env::current_exe().expect("this program has a file"));
        command.args(["--exact", &format!("redis::{test}"), "--nocapture"]);
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

    /// Kills it, without a chance to clean up.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
    }

    pub(crate) fn begin(&mut self) {
        let input = self.process.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "go").expect("the process reads");
    }

    /// What it reports for each limit when it is done.
    pub(crate) fn admitted(mut self) -> Vec<String> {
        let admitted =
            self.lines.by_ref().filter_map(|line| Some(line.strip_prefix("admitted ")?.to_owned()));
        let admitted = admitted.collect();
        assert!(self.process.wait().expect("it is ours").success());
        admitted
    }
}
