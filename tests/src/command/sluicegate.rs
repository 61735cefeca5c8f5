//! The command `sluicegate serve` on free ports.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sluicegate_tests::servers::until;
use tempfile::TempDir;

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const FILE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 4000000000 }
";

pub(crate) struct Sluicegate {
    process: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    pub(crate) file: PathBuf,
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    _directory: TempDir,
}

impl Sluicegate {
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_with(FILE, more)
    }

    pub(crate) fn start_with(text: &str, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ratelimit.yaml");
        std::fs::write(&file, text).expect("a file");
        let any = "127.0.0.1:0";
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
        command.args(["serve", "--log", "json", "--no-watch"]);
        if !more.contains(&"--admin") {
            command.args(["--admin", "off"]);
        }
        command.args(["--grpc", any, "--http", any, "--envoy"]).arg(&file).args(more);
        command.env_remove("SLUICEGATE_REDIS").env_remove("SLUICEGATE_LOG");
        command.env_remove("SLUICEGATE_ADMIN_TOKEN").env_remove("SLUICEGATE_STATE");
        command.env_remove("SLUICEGATE_MASTERS").env_remove("SLUICEGATE_ADVERTISE");
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the command");
        let errors = BufReader::new(process.stderr.take().expect("a pipe"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let read = Arc::clone(&lines);
        thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                read.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        let nowhere = ([0, 0, 0, 0], 0).into();
        let mut started =
            Self { process, lines, file, grpc: nowhere, http: nowhere, _directory: directory };
        started.grpc = started.port("gRPC");
        started.http = started.port("HTTP");
        started
    }

    pub(crate) fn port(&self, name: &str) -> SocketAddr {
        let line = self.logged(|line| line["message"] == "serving" && line["port"] == name);
        line["address"].as_str().and_then(|address| address.parse().ok()).expect("an address")
    }

    /// The first log line like this, once there is one.
    pub(crate) fn logged(&self, like: impl Fn(&Value) -> bool) -> Value {
        until("a log line", || self.lines().into_iter().find(&like))
    }

    pub(crate) fn says(&self, message: &str) -> Value {
        self.logged(|line| line["message"].as_str().is_some_and(|said| said.contains(message)))
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().expect("kill");
        assert!(sent.success());
    }

    /// How the process ended, once it has.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the end of the process", || self.process.try_wait().expect("a process"))
    }
}

impl Drop for Sluicegate {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
