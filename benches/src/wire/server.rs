//! A server process, as seen by the process that started it.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::cores::Cores;

/// Ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    process: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts this program once more, with these arguments, which say what server it is.
    ///
    /// # Errors
    ///
    /// If it does not start, or does not say its address.
    pub fn start(arguments: &[&str], cores: Option<Cores>) -> io::Result<Self> {
        let program = env::current_exe()?;
        let mut process = Cores::command(cores, &program)
            .args(arguments)
            // It ends with this process, however that ends: see `serve`.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = process.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        // Made before the address is read, so that the process ends even if that fails.
        let mut server = Self { process, address: SocketAddr::from(([0; 4], 0)) };
        let said =
            || io::Error::other(format!("{arguments:?} says {line:?} instead of its address"));
        server.address = line.trim().parse().map_err(|_| said())?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How long its threads have been running on a core, if the system reports that.
    pub fn time_on_core(&self) -> Option<Duration> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id())).ok()?;
        let each = threads.map(|thread| {
            let said = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            said.split_whitespace().next()?.parse::<u64>().ok()
        });
        each.sum::<Option<_>>().map(Duration::from_nanos)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
