use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::process::{Directory, Process};
use super::{Connection, Program, Reply, port, until};

/// The longest time that a running server takes to answer. A stopped one takes longer.
const PROMPT: Duration = Duration::from_millis(50);

/// The option for the port on which it speaks TLS.
const TLS_PORT: &str = "--tls-port";

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// A server on a free port of this machine, and on a Unix socket.
#[derive(Debug)]
pub struct Server {
    program: Program,
    arguments: Vec<String>,
    port: u16,
    process: Mutex<Option<Process>>,
    // Dropped last, because the process works in it.
    directory: Directory,
}

impl Server {
    /// Starts `redis-server`.
    ///
    /// # Panics
    ///
    /// If it is not installed (the message says how to get it), or if it does not start.
    pub fn start() -> Self {
        Self::start_with([])
    }

    /// Starts `redis-server` with further options, such as `["--maxmemory", "2mb"]`.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub fn start_with<const N: usize>(options: [&str; N]) -> Self {
        Self::of(Program::Redis, options)
    }

    /// Starts `valkey-server`, if it is installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn valkey() -> Option<Self> {
        Program::Valkey.find().map(|_| Self::of(Program::Valkey, []))
    }

    /// Starts a server of either program.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub fn of<const N: usize>(program: Program, options: [&str; N]) -> Self {
        let own = [
            // Nothing is written to disk: a server begins empty and leaves nothing behind.
            ["--save", ""],
            ["--appendonly", "no"],
            ["--bind", "127.0.0.1"],
            ["--unixsocket", "socket"],
            // A replica's first copy is sent at once instead of after five seconds.
            ["--repl-diskless-sync", "yes"],
            ["--repl-diskless-sync-delay", "0"],
        ];
        let words = own.as_flattened().iter().chain(&options);
        Self::launch(program, words.map(|&word| word.to_owned()).collect(), |_| {})
    }

    /// Starts `redis-server` so that it also speaks TLS on a port of its own, with this certificate and its key, in
    /// PEM. With an `authority`, it asks clients for a certificate signed by that.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does, and if it was built without TLS.
    pub fn tls(certificate: &str, key: &str, authority: Option<&str>) -> Self {
        let files = [
            ("certificate.pem", Some(certificate)),
            ("key.pem", Some(key)),
            ("authority.pem", authority),
        ];
        let clients = if authority.is_some() { "yes" } else { "no" };
        let own = [
            ["--save", ""],
            ["--bind", "127.0.0.1"],
            // Each attempt draws its own.
            [TLS_PORT, "0"],
            ["--tls-cert-file", "certificate.pem"],
            ["--tls-key-file", "key.pem"],
            ["--tls-auth-clients", clients],
        ];
        let trusted = authority.map_or([].as_slice(), |_| &["--tls-ca-cert-file", "authority.pem"]);
        let words = own.as_flattened().iter().chain(trusted);
        Self::launch(Program::Redis, words.map(|&word| word.to_owned()).collect(), |directory| {
            for (file, text) in files {
                let written = fs::write(directory.join(file), text.unwrap_or_default());
                written.expect("the directory is ours");
            }
        })
    }

    /// Its address for TLS.
    ///
    /// # Panics
    ///
    /// If it does not speak TLS.
    pub fn tls_url(&self) -> String {
        let at = self.arguments.iter().position(|word| word == TLS_PORT).expect("it speaks TLS");
        format!("rediss://localhost:{}/", self.arguments[at + 1])
    }

    /// Starts a program, with files in its directory.
    pub(super) fn launch(
        program: Program,
        arguments: Vec<String>,
        prepare: impl Fn(&Path),
    ) -> Self {
        for _ in 0..10 {
            let mut arguments = arguments.clone();
            if let Some(at) = arguments.iter().position(|word| word == TLS_PORT) {
                arguments[at + 1] = port::free().to_string();
            }
            let server = Self {
                program,
                arguments,
                port: port::free(),
                process: Mutex::new(None),
                directory: Directory::make(),
            };
            prepare(server.directory.path());
            if server.run() {
                return server;
            }
        }
        panic!("other processes took each of ten free ports first")
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its address as a URL.
    pub fn url(&self) -> String {
        format!("redis://{}/", self.address())
    }

    /// Its Unix socket as a URL.
    pub fn socket_url(&self) -> String {
        format!("redis+unix://{}", self.directory.path().join("socket").display())
    }

    /// Sends a command, and returns the answer.
    ///
    /// # Panics
    ///
    /// If it does not answer. An error that it answers is a [`Reply`].
    pub fn cli<W: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = W>) -> Reply {
        self.try_cli(words).expect("the server answers")
    }

    /// Like [`cli`](Self::cli), for a server that may be down.
    ///
    /// # Errors
    ///
    /// If it does not answer within five seconds.
    pub fn try_cli<W: AsRef<[u8]>>(&self, words: impl IntoIterator<Item = W>) -> io::Result<Reply> {
        Connection::open(self.address())?.call(words)
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&self) {
        *self.process() = None;
    }

    /// Stops it, as `kill -STOP` does. Its connections stay open, and no call is answered.
    ///
    /// # Panics
    ///
    /// If it is not running.
    pub fn pause(&self) {
        self.signal("STOP");
        until("the server to stop", || self.ping(PROMPT).is_err().then_some(()));
    }

    /// Lets it continue.
    ///
    /// # Panics
    ///
    /// If it is not running.
    pub fn resume(&self) {
        self.signal("CONT");
        until("the server to go on", || self.ping(PROMPT).ok());
    }

    /// Starts it again on the same port, with empty memory. Kills it first if it still runs.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self) {
        self.kill();
        until("the server's own port", || self.run().then_some(()));
    }

    /// Starts the process, and waits until it answers. `false` if another process has the port.
    fn run(&self) -> bool {
        let port = ["--port".to_owned(), self.port.to_string()];
        let arguments = [self.arguments.as_slice(), &port].concat();
        let process = Process::start(&self.program.file(), &arguments, &self.directory);
        let (id, began) = (process.id(), Instant::now());
        *self.process() = Some(process);
        until("a server to start", || {
            let log = self.directory.log().unwrap_or_default();
            if log.contains("Address already in use") {
                return Some(false);
            }
            let hopeless = log.contains("FATAL CONFIG FILE ERROR") || began.elapsed() > START;
            assert!(!hopeless, "the server does not start: {log}");
            let told = self.info("server").ok()?;
            Some(told.contains(&format!("process_id:{id}\r\n")))
        })
    }

    /// A section of `INFO`.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    pub(super) fn info(&self, section: &str) -> io::Result<String> {
        match self.try_cli(["INFO", section])? {
            Reply::Bytes(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            other => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{other:?}"))),
        }
    }

    fn ping(&self, patience: Duration) -> io::Result<Reply> {
        Connection::open_for(self.address(), patience)?.call(["PING"])
    }

    fn signal(&self, signal: &str) {
        self.process().as_mut().expect("the server is running").signal(signal);
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
