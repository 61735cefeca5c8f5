//! Programs that tests start on free ports and end.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use sluicegate_counterparts::find;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

/// How long a program may take until it accepts connections.
const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy. It ends with this.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    directory: TempDir,
    /// Killed when it is dropped.
    _child: Child,
}

impl Program {
    /// Starts a program that listens where `prepare` tells it to, and waits until it accepts connections.
    pub(crate) async fn start(
        name: &str,
        prepare: impl Fn(&mut Command, &Path, SocketAddr),
    ) -> Self {
        let file = find(name);
        // Another program can take the port before this one does.
        for _ in 0..3 {
            let directory = tempfile::tempdir().expect("a directory");
            let address = free_address();
            let log = std::fs::File::create(directory.path().join("log")).expect("a file");
            let mut command = Command::new(&file);
            command.current_dir(directory.path()).env("HOME", directory.path()).kill_on_drop(true);
            command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
            prepare(&mut command, directory.path(), address);
            let mut child = command.spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
            if accepts(&mut child, address).await {
                return Self { address, directory, _child: child };
            }
            let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
            assert!(log.to_lowercase().contains("address already in use"), "{name} ended:\n{log}");
        }
        panic!("{name} found no free port");
    }

    /// What the program has written to its output so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

/// Whether the program accepts connections before it ends.
async fn accepts(child: &mut Child, address: SocketAddr) -> bool {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if child.try_wait().expect("a status").is_some() {
            return false;
        }
        if TcpStream::connect(address).await.is_ok() {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("{address} does not accept connections");
}

/// Nobody listens there. No port is given twice: two Envoys would share it, and each would get a part of the connections.
pub(crate) fn free_address() -> SocketAddr {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        if GIVEN.lock().expect("no panic").insert(address.port()) {
            return address;
        }
    }
}
