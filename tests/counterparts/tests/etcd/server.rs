use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A real etcd on a free port, with a directory of its own.
pub(crate) struct Server {
    directory: TempDir,
    clients: String,
    peers: String,
    process: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut server =
            Self { directory, clients: free_address(), peers: free_address(), process: None };
        server.start_again();
        server
    }

    pub(crate) fn address(&self) -> &str {
        &self.clients
    }

    /// Starts it with what it had when it was killed.
    pub(crate) fn start_again(&mut self) {
        let Self { clients, peers, .. } = &*self;
        let data = self.data();
        let mut command = Command::new("etcd");
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
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn();
        self.process = Some(process.expect("etcd, which `cargo xtask counterparts` installs"));
    }

    /// Ends it as a machine without power does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
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

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}
