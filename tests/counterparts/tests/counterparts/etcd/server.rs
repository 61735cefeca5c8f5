use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use sluicegate_counterparts::find;
use tempfile::TempDir;

/// Runs a program until the input of this shell ends: because it is closed, or because the process of the test has ended.
const KEEPER: &str = r#"
    exec 3<&0
    "$@" &
    server=$!
    { read -r _; kill -s KILL "$server"; } <&3 &
    wait "$server"
"#;

/// Held while an etcd starts.
static STARTING: Mutex<()> = Mutex::new(());

/// How often it is started before a test gives up.
const ATTEMPTS: usize = 20;

/// A real etcd on a free port, with a directory of its own.
pub(crate) struct Server {
    directory: TempDir,
    clients: String,
    peers: String,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        // Until it listens, another test may be given the same port.
        let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS {
            let directory = tempfile::tempdir().expect("a directory");
            let [clients, peers] = free_addresses();
            let mut server = Self { directory, clients, peers, process: None };
            if server.listens() {
                return server;
            }
        }
        panic!("etcd does not start");
    }

    pub(crate) fn address(&self) -> &str {
        &self.clients
    }

    /// Starts it with what it had when it was killed.
    pub(crate) fn start_again(&mut self) {
        // A candidate that looks for it may hold its port for a moment.
        assert!((0..ATTEMPTS).any(|_| self.listens()), "etcd does not start again");
    }

    /// Starts it, and returns whether it listens. Otherwise another program has taken a port of it.
    fn listens(&mut self) -> bool {
        let mut process = self.spawn();
        let port = self.clients.trim_start_matches("http://");
        let mut listens = false;
        while !listens && process.try_wait().expect("a process").is_none() {
            pause();
            listens = TcpStream::connect(port).is_ok();
        }
        let has_ended = process.try_wait().expect("a process").is_some();
        self.process = Some(process);
        listens && !has_ended
    }

    fn spawn(&self) -> Child {
        let Self { clients, peers, .. } = self;
        let data = self.data();
        // Stores of a static runtime are not dropped when the process ends.
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(find("etcd"));
        for (option, value) in [
            ("--data-dir", &*data.to_string_lossy()),
            ("--listen-client-urls", clients),
            ("--advertise-client-urls", clients),
            ("--listen-peer-urls", peers),
            ("--initial-advertise-peer-urls", peers),
            ("--initial-cluster", &format!("default={peers}")),
        ] {
            command.args([option, value]);
        }
        // Settings of the machine's own etcd must not count.
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("ETCD_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("every Unix has a shell")
    }

    /// Ends it as a machine without power does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }

    /// Deletes what it has.
    pub(crate) fn lose_everything(&self) {
        assert!(self.process.is_none(), "it is killed first");
        fs::remove_dir_all(self.data()).expect("a directory that is deleted");
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process starts, which no clock can hurry")]
fn pause() {
    sleep(Duration::from_millis(10));
}

/// Two at once, so that they differ.
fn free_addresses() -> [String; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| format!("http://{}", listener.local_addr().expect("an address")))
}
