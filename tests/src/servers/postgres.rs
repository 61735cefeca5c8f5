use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::process::{Directory, Process};
use super::{Program, port, until};

/// A PostgreSQL server on a free port of this machine, without passwords. Its superuser and its database are `postgres`.
#[derive(Debug)]
pub struct Postgres {
    port: u16,
    process: Mutex<Option<Process>>,
    // Dropped last, because the process works in it.
    directory: Directory,
}

impl Postgres {
    /// Starts a server with an empty database.
    ///
    /// # Panics
    ///
    /// If it is not installed (the message says how to get it), or if it does not start.
    pub fn start() -> Self {
        let mut server = Self::of_own();
        let words =
            ["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"];
        server.tool("initdb", &words);
        server.start_first();
        server
    }

    /// Starts a replica, which gets asynchronously what is written here.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start) does.
    pub fn replicate(&self) -> Self {
        let mut replica = Self::of_own();
        let port = self.port.to_string();
        let words = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R", "-c", "fast"];
        replica.tool("pg_basebackup", &[&words[..], &["--no-sync", "-D"]].concat());
        replica.start_first();
        replica
    }

    /// Restarts it with this certificate and key, in PEM. Clients may connect with TLS from then on.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn encrypt(&self, certificate: &str, key: &str) {
        for (name, text) in [(CERTIFICATE, certificate), (KEY, key)] {
            let file = self.directory.path().join(name);
            std::fs::write(&file, text).expect("a file");
            run(Command::new("chmod").arg("600").arg(&file));
            if is_root() {
                run(Command::new("chown").arg("nobody").arg(&file));
            }
        }
        self.kill();
        self.restart();
    }

    /// A directory that the server may use. The port comes with the first start.
    fn of_own() -> Self {
        let server = Self { port: 0, process: Mutex::default(), directory: Directory::make() };
        if is_root() {
            // It refuses to run as root.
            let mut chown = Command::new("chown");
            run(chown.args(["nobody"]).arg(server.directory.path()));
        }
        server
    }

    /// Starts it for the first time, on a port that no other process has.
    fn start_first(&mut self) {
        // Drawn only now, because the data take a while to be made.
        let ports = std::iter::repeat_with(port::free).take(10);
        let mut ports = ports.map(|port| {
            self.port = port;
            self.run(|log| log.contains("could not bind"))
        });
        assert!(
            ports.any(|is_there| is_there),
            "other processes took each of ten free ports first"
        );
    }

    /// Runs a program of PostgreSQL's with these words and the directory of the data.
    fn tool(&self, name: &str, words: &[&str]) {
        // Beside the program itself, and not always beside a link to it.
        let file = Program::Postgres.file().canonicalize().expect("a path").with_file_name(name);
        let (program, mut arguments) = unprivileged(file);
        arguments.extend(words.iter().map(|word| (*word).to_owned()));
        arguments.push(self.data());
        run(Command::new(program).args(arguments).stdout(Stdio::null()));
    }

    /// How clients connect to whichever of two servers takes writes.
    pub fn config_with(&self, other: &Self) -> String {
        let ports = [self.port, other.port].map(|port| port.to_string()).join(",");
        let hosts = "host=127.0.0.1,127.0.0.1";
        format!(
            "{hosts} port={ports} user=postgres dbname=postgres target_session_attrs=read-write"
        )
    }

    /// How clients connect to it.
    pub fn config(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// Kills it.
    pub fn kill(&self) {
        drop(self.process().take());
        until("the server to be gone", || (!self.listens()).then_some(()));
    }

    /// Starts it again, with the data that it had.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self) {
        self.run(|_| false);
    }

    /// Starts the process, and waits until it can be called. `false` if it says that it never can.
    fn run(&self, is_hopeless: impl Fn(&str) -> bool) -> bool {
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "fsync=off".to_owned(),
            "max_connections=200".to_owned(),
            format!("port={}", self.port),
        ];
        let (program, mut arguments) = unprivileged(Program::Postgres.file());
        arguments.extend(["-D".to_owned(), self.data()]);
        let [certificate, key] = [CERTIFICATE, KEY].map(|name| self.directory.path().join(name));
        if key.exists() {
            let (certificate, key) = (certificate.display(), key.display());
            let files = [format!("ssl_cert_file={certificate}"), format!("ssl_key_file={key}")];
            let tls = ["ssl=on".to_owned()].into_iter().chain(files);
            arguments.extend(tls.flat_map(|setting| ["-c".to_owned(), setting]));
        }
        arguments.extend(settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
        until("the server to start", || {
            let mut process = self.process();
            if process.is_none() {
                *process = Some(Process::start(&program, &arguments, &self.directory));
            }
            let log = self.directory.log().unwrap_or_default();
            if is_hopeless(&log) {
                *process = None;
                return Some(false);
            }
            if log.contains("FATAL:  ") && !log.contains("the database system is starting up") {
                // What a killed server has left behind is not gone yet.
                *process = None;
            }
            // A replica accepts read-only connections.
            (log.contains("ready to accept ") && self.listens()).then_some(true)
        })
    }

    fn data(&self) -> String {
        self.directory.path().join("data").to_string_lossy().into_owned()
    }

    fn listens(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of its certificate and its key, in its directory.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// A program and its first words, so that it does not run as root.
fn unprivileged(program: PathBuf) -> (PathBuf, Vec<String>) {
    if !is_root() {
        return (program, Vec::new());
    }
    let words = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];
    let words = words.map(str::to_owned).into_iter();
    (PathBuf::from("setpriv"), words.chain([program.to_string_lossy().into_owned()]).collect())
}

/// Whether the tests run as root, which many servers refuse to do.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn run(command: &mut Command) {
    let status = command.stderr(Stdio::inherit()).status();
    let status = status.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
