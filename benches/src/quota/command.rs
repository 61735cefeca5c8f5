//! The command `sluicegate serve` itself, as it is shipped.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::question::asking;
use crate::load::Load;

/// Rules of the file that is read again.
const RULES: usize = 10_000;

/// Calls under way while it is read.
const IN_FLIGHT: usize = 8;

/// A running server, with a directory of its own.
#[derive(Debug)]
pub struct Sluicegate {
    process: Child,
    directory: PathBuf,
    grpc: SocketAddr,
}

/// What a reload did.
#[derive(Debug, Clone, Copy)]
pub struct Reloaded {
    /// From the moment when the new file was in its place to the first answer by it.
    pub took: Duration,
    /// Right answers in that time.
    pub answered: u64,
}

impl Sluicegate {
    /// Starts `program` with a file of this number of rules.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(program: &Path, rules: usize) -> Result<Self, Box<dyn Error>> {
        let directory =
            std::env::temp_dir().join(format!("sluicegate-page-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("envoy.yaml"), file(rules, "first"))?;
        let mut process = Command::new(program)
            .arg("serve")
            .arg("--envoy")
            .arg(directory.join("envoy.yaml"))
            .args(["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--log", "json", "--log-level", "info"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let (told, addresses) = mpsc::channel();
        if let Some(log) = process.stderr.take() {
            // It reads on, so that the server can write on.
            thread::spawn(move || {
                let lines = BufReader::new(log).lines().map_while(Result::ok);
                lines.filter_map(|line| address_in(&line)).for_each(|address| {
                    let _ = told.send(address);
                });
            });
        }
        let grpc = SocketAddr::from(([127, 0, 0, 1], 0));
        // Made before the address is known, so that the process ends even if that fails.
        let mut server = Self { process, directory, grpc };
        server.grpc = addresses.recv_timeout(Duration::from_secs(30))?;
        Ok(server)
    }

    /// Bytes of it that are in memory, where the system says.
    pub fn resident(&self) -> Option<u64> {
        crate::process::resident_of(&self.process.id().to_string())
    }

    /// Puts 10,000 other rules in the place of its own, while calls are under way.
    ///
    /// # Errors
    ///
    /// If a call fails, or the new rules do not come into force.
    pub fn reload(&mut self) -> Result<Reloaded, Box<dyn Error>> {
        let next = self.directory.join("next");
        fs::write(&next, file(RULES, "second"))?;
        let mut calls = Load::connect(self.grpc, &asking("nobody", 1), 2, IN_FLIGHT)?;
        calls.flood(Duration::from_millis(100))?;
        fs::rename(&next, self.directory.join("envoy.yaml"))?;
        let replaced = Instant::now();
        let mut answered = 0;
        loop {
            answered += calls.flood(Duration::from_millis(5))?.count;
            // Only the new file refuses this.
            let mut probe = Load::connect(self.grpc, &asking("gone", 2), 1, 1)?;
            if probe.once().is_ok() {
                return Ok(Reloaded { took: replaced.elapsed(), answered });
            }
            if replaced.elapsed() > Duration::from_secs(20) {
                return Err("the new rules did not come into force".into());
            }
        }
    }
}

impl Drop for Sluicegate {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A file with this number of rules for values of one key. In the second one, a rule of 0 refuses `gone`.
fn file(rules: usize, name: &str) -> String {
    let mut text = String::from("domain: edge\ndescriptors:\n");
    for number in 0..rules {
        let _ = write!(
            text,
            "  - key: user\n    value: {name}-{number}\n    rate_limit: {{ unit: day, requests_per_unit: {} }}\n",
            number + 1
        );
    }
    if name == "second" {
        text +=
            "  - key: user\n    value: gone\n    rate_limit: { unit: day, requests_per_unit: 0 }\n";
    }
    text
}

/// The address of the gRPC port in a line of the log.
fn address_in(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line.get("port")? == "gRPC").then(|| line.get("address")?.as_str()?.parse().ok())?
}
