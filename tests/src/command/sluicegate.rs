//! The command `sluicegate serve` on free ports.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::servers::{Directory, until};

/// A server in a process of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Sluicegate {
    process: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    /// The file of Envoy's service.
    pub file: PathBuf,
    /// Its gRPC port.
    pub grpc: SocketAddr,
    /// Its HTTP port.
    pub http: SocketAddr,
    // Dropped last.
    _directory: Directory,
}

impl Sluicegate {
    /// Starts the program as `sluicegate serve`, with this file of Envoy's service and further options, on free ports, and
    /// waits until it serves. Nothing of the environment counts, there is no dashboard unless `--admin` is among the
    /// options, and files are not watched.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(program: &Path, text: &str, more: &[&str]) -> Self {
        let directory = Directory::make();
        let file = directory.path().join("ratelimit.yaml");
        std::fs::write(&file, text).expect("a file");
        let any = "127.0.0.1:0";
        let mut command = Command::new(program);
        command.args(["serve", "--log", "json", "--no-watch"]);
        if !more.contains(&"--admin") {
            command.args(["--admin", "off"]);
        }
        command.args(["--grpc", any, "--http", any, "--envoy"]).arg(&file).args(more);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("SLUICEGATE_") {
                command.env_remove(name);
            }
        }
        Self::run(command, directory, file)
    }

    /// Runs this command, which has to log JSON at the level `info`, and waits until it serves.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn run(command: Command, directory: Directory, file: PathBuf) -> Self {
        let mut started = Self::spawn(command, directory, file);
        started.grpc = started.port("gRPC");
        started.http = started.port("HTTP");
        started
    }

    /// Like [`run`](Self::run), without waiting.
    ///
    /// # Panics
    ///
    /// If there is no such program.
    pub fn spawn(mut command: Command, directory: Directory, file: PathBuf) -> Self {
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
        Self { process, lines, file, grpc: nowhere, http: nowhere, _directory: directory }
    }

    /// The address of a port by its name in the log.
    ///
    /// # Panics
    ///
    /// If it does not serve one.
    pub fn port(&self, name: &str) -> SocketAddr {
        let line = self.logged(|line| line["message"] == "serving" && line["port"] == name);
        line["address"].as_str().and_then(|address| address.parse().ok()).expect("an address")
    }

    /// The first log line like this, once there is one.
    ///
    /// # Panics
    ///
    /// If there is none for a minute.
    pub fn logged(&self, like: impl Fn(&Value) -> bool) -> Value {
        until("a log line", || self.lines().into_iter().find(&like))
    }

    /// The first log line with this in its message.
    ///
    /// # Panics
    ///
    /// If there is none for a minute.
    pub fn says(&self, message: &str) -> Value {
        self.logged(|line| line["message"].as_str().is_some_and(|said| said.contains(message)))
    }

    /// Its log so far.
    pub fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal, such as `STOP`.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status().expect("kill");
        assert!(sent.success());
    }

    /// How the process ended, once it has.
    ///
    /// # Panics
    ///
    /// If it does not end within a minute.
    pub fn ended(&mut self) -> ExitStatus {
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
