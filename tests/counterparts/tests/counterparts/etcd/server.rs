use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use sluicegate_counterparts::find;
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::servers::{Directory, Process, until};

/// Held while an etcd starts.
static STARTING: Mutex<()> = Mutex::new(());

/// How often it is started before a test gives up.
const ATTEMPTS: usize = 20;

/// A real etcd on a free port, with a directory of its own.
pub(crate) struct Server {
    clients: String,
    peers: String,
    process: Option<Process>,
    has_tls: bool,
    // Dropped last, because the process works in it.
    directory: Directory,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// Starts one that speaks TLS, with a certificate for `localhost` by this authority, and asks clients for a certificate
    /// by it.
    pub(crate) fn start_with_tls(authority: &Authority) -> Self {
        Self::start_with(Some(authority))
    }

    fn start_with(authority: Option<&Authority>) -> Self {
        // Until it listens, another test may be given the same port.
        let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS {
            let [clients, peers] = free_addresses();
            let directory = Directory::make();
            if let Some(authority) = authority {
                let (certificate, key) = authority.sign("localhost");
                let files =
                    [(CERTIFICATE, &*certificate), (KEY, &key), (AUTHORITY, authority.pem())];
                for (name, text) in files {
                    fs::write(directory.path().join(name), text).expect("a file");
                }
            }
            let has_tls = authority.is_some();
            let mut server = Self { clients, peers, process: None, has_tls, directory };
            if server.listens() {
                return server;
            }
        }
        panic!("etcd does not start");
    }

    /// Its address, such as `http://127.0.0.1:2379`.
    pub(crate) fn address(&self) -> String {
        let port = self.clients.rsplit_once(':').expect("a port").1;
        if self.has_tls { format!("https://localhost:{port}") } else { self.clients.clone() }
    }

    /// Starts it with what it had when it was killed.
    pub(crate) fn start_again(&mut self) {
        // A candidate that looks for it may hold its port for a moment.
        assert!((0..ATTEMPTS).any(|_| self.listens()), "etcd does not start again");
    }

    /// Starts it, and returns whether it listens. Otherwise another program has taken a port of it.
    fn listens(&mut self) -> bool {
        self.process = None;
        self.process = Some(self.spawn());
        until("etcd to start", || {
            let log = self.directory.log().unwrap_or_default();
            if log.contains("address already in use") {
                return Some(false);
            }
            log.contains("ready to serve client requests").then_some(true)
        })
    }

    fn spawn(&self) -> Process {
        let Self { clients, peers, .. } = self;
        let scheme = if self.has_tls { "https://" } else { "http://" };
        let clients = &clients.replace("http://", scheme);
        // Settings of the machine's own etcd must not count.
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let settings = names.filter(|name| name.starts_with("ETCD_"));
        let mut arguments: Vec<_> = settings.flat_map(|name| ["-u".to_owned(), name]).collect();
        arguments.push(find("etcd").to_string_lossy().into_owned());
        for (option, value) in [
            ("--data-dir", DATA),
            ("--listen-client-urls", clients),
            ("--advertise-client-urls", clients),
            ("--listen-peer-urls", peers),
            ("--initial-advertise-peer-urls", peers),
            ("--initial-cluster", &format!("default={peers}")),
        ] {
            arguments.extend([option.to_owned(), value.to_owned()]);
        }
        if self.has_tls {
            let files = [("--cert-file", CERTIFICATE), ("--key-file", KEY)];
            for (option, file) in files.into_iter().chain([("--trusted-ca-file", AUTHORITY)]) {
                arguments.extend([option.to_owned(), file.to_owned()]);
            }
            arguments.push("--client-cert-auth".to_owned());
        }
        Process::start(Path::new("env"), &arguments, &self.directory)
    }

    /// Ends it as a machine without power does.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    /// Deletes what it has.
    pub(crate) fn lose_everything(&self) {
        assert!(self.process.is_none(), "it is killed first");
        let data = self.directory.path().join(DATA);
        fs::remove_dir_all(data).expect("a directory that is deleted");
    }
}

/// Where it keeps what it has, in its directory.
const DATA: &str = "data";

const CERTIFICATE: &str = "server.pem";
const KEY: &str = "server.key";
const AUTHORITY: &str = "authority.pem";

/// Two at once, so that they differ.
fn free_addresses() -> [String; 2] {
    let listeners = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| format!("http://{}", listener.local_addr().expect("an address")))
}
